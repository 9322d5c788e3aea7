/** Connections are shared fairly between keys, whatever anyone asks for. Decisions: fairness. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import * as Admission from "../../../src/database/Admission.ts"

const make = (permits: number, waitingPerKey = 100, waiting = 1000) =>
  Admission.make({ permits, waitingPerKey, waiting })

/** Requests so many connections for a key, and returns how many it took at once. */
const flood = (admission: Admission.Admission, key: string, times: number, served: Array<string> = []) => {
  let taken = 0
  for (let time = 0; time < times; time++) {
    if (admission.request({ key, share: Admission.fair, start: () => void served.push(key) }) === "taken") taken++
  }
  return taken
}

describe("the connections of a pool", () => {
  it.each([
    [1, [1, 0]],
    [2, [1, 1, 0]],
    [3, [2, 1, 0]],
    [10, [5, 3, 1, 1, 0]]
  ] as const)("of %d leave something for the next key, however much one asks for", (permits, expected) => {
    const admission = make(permits)
    const shares = expected.map((_, index) => flood(admission, `key ${index}`, 64))
    assert.deepStrictEqual(shares, [...expected])
  })

  it("are given back to those that wait, key by key in turn", () => {
    const admission = make(1)
    const served: Array<string> = []
    flood(admission, "a", 4, served)
    flood(admission, "b", 2, served)
    flood(admission, "c", 1, served)
    for (const key of ["a", "a", "b", "c", "a", "b"]) admission.release(key)
    assert.deepStrictEqual(served, ["a", "b", "c", "a", "b", "a"])
  })

  it("may be asked for by as many as there is room for; one more of the key, or in all, is refused at once", () => {
    const admission = make(1, 2, 3)
    flood(admission, "holder", 1)
    const ask = (key: string) => admission.request({ key, share: Admission.fair, start: () => undefined })
    assert.deepStrictEqual(["a", "a", "a", "b", "c"].map(ask), ["queued", "queued", "refused", "queued", "refused"])
  })

  it.each([
    ["nearly all", Admission.nearlyAll, 8, [1, 1]],
    ["at most two", Admission.atMost(2), 2, [4, 2]]
  ] as const)("are shared otherwise where it is said so: %s", (_, share, own, others) => {
    const admission = make(10)
    const request = () => admission.request({ key: "worker", share, start: () => undefined })
    const asked = Array.from({ length: 10 }, request)
    assert.strictEqual(asked.filter((answer) => answer === "taken").length, own)
    assert.deepStrictEqual([flood(admission, "a", 5), flood(admission, "b", 5)], [...others])
  })

  it("are served without end where each gives its own back at once", () => {
    const admission = make(1)
    let served = 0
    for (let index = 0; index < 900; index++) {
      const key = `key ${index % 20}`
      admission.request({
        key,
        share: Admission.fair,
        start: () => {
          served++
          admission.release(key)
        }
      })
    }
    admission.release("key 0")
    assert.strictEqual(served, 899)
    assert.deepStrictEqual(admission.stats(), { free: 1, waiting: 0, keys: 0 })
  })
})

const Step = Schema.Struct({
  what: Schema.Literals(["request", "request", "release", "withdraw"]),
  key: Schema.Literals(["a", "b", "c", "d", "e"]),
  which: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 7 }))
})

interface Applied {
  readonly waiter: Admission.Waiter
  state: "queued" | "holds" | "gone"
}

describe("whatever is requested, withdrawn and given back", () => {
  it.prop(
    "no connection is lost or lent twice, no key takes the last ones from the others, and nobody waits who could be served",
    {
      permits: Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 12 }))),
      steps: Arbitrary.schema(Schema.Array(Step).check(Schema.isMaxLength(120)))
    },
    ({ permits, steps }) => {
      const admission = make(permits, 6, 15)
      const all: Array<Applied> = []
      const holding = (key?: string) =>
        all.filter(({ waiter, state }) => state === "holds" && (key === undefined || waiter.key === key))
      const waiting = (key?: string) =>
        all.filter(({ waiter, state }) => state === "queued" && (key === undefined || waiter.key === key))
      const take = (applied: Applied) => {
        const { key } = applied.waiter
        const free = permits - holding().length
        assert.isAbove(free, 0)
        assert.isBelow(holding(key).length, free)
        applied.state = "holds"
      }
      for (const { key, what, which } of steps) {
        if (what === "request") {
          const applied: Applied = {
            waiter: { key, share: Admission.fair, start: () => take(applied) },
            state: "gone"
          }
          const answer = admission.request(applied.waiter)
          if (answer === "taken") take(applied)
          if (answer === "queued") applied.state = "queued"
          if (answer === "refused") assert.isTrue(waiting(key).length === 6 || waiting().length === 15)
          all.push(applied)
        } else if (what === "release") {
          const [applied] = holding(key)
          if (applied === undefined) continue
          applied.state = "gone"
          admission.release(key)
        } else {
          const applied = waiting(key)[which]
          if (applied === undefined) continue
          applied.state = "gone"
          admission.withdraw(applied.waiter)
        }
        const free = permits - holding().length
        const known = new Set([...holding(), ...waiting()].map(({ waiter }) => waiter.key))
        assert.deepStrictEqual(admission.stats(), { free, waiting: waiting().length, keys: known.size })
        for (const { waiter } of waiting()) assert.isFalse(free > 0 && holding(waiter.key).length < free)
      }
      // All that hold give back, until nobody waits: everyone that waited is served.
      for (let held = holding(); held.length > 0; held = holding()) {
        for (const applied of held) {
          applied.state = "gone"
          admission.release(applied.waiter.key)
        }
      }
      assert.deepStrictEqual(admission.stats(), { free: permits, waiting: 0, keys: 0 })
    },
    { arbitrary: { runs: 300 } }
  )
})
