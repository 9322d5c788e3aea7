/** Connections are shared fairly between keys, whatever anyone asks for. Decisions: fairness. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import * as Admission from "../../src/database/Admission.ts"

const make = (permits: number, waitingPerKey = 100, waiting = 1000) =>
  Admission.make({ permits, waitingPerKey, waiting })

/** Applies so often for a key, and says how many it was granted at once. */
const flood = (admission: Admission.Admission, key: string, times: number, served: Array<string> = []) => {
  let granted = 0
  for (let time = 0; time < times; time++) {
    if (admission.apply({ key, share: Admission.fair, granted: () => void served.push(key) }) === "granted") granted++
  }
  return granted
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
    const ask = (key: string) => admission.apply({ key, share: Admission.fair, granted: () => undefined })
    assert.deepStrictEqual(["a", "a", "a", "b", "c"].map(ask), ["waits", "waits", "refused", "waits", "refused"])
  })

  it.each([
    ["nearly all", Admission.nearlyAll, 8, [1, 1]],
    ["at most two", Admission.atMost(2), 2, [4, 2]]
  ] as const)("are shared otherwise where it is said so: %s", (_, share, own, others) => {
    const admission = make(10)
    const apply = () => admission.apply({ key: "worker", share, granted: () => undefined })
    const asked = Array.from({ length: 10 }, apply)
    assert.strictEqual(asked.filter((answer) => answer === "granted").length, own)
    assert.deepStrictEqual([flood(admission, "a", 5), flood(admission, "b", 5)], [...others])
  })

  it("are served without end where each gives its own back at once", () => {
    const admission = make(1)
    let served = 0
    for (let index = 0; index < 900; index++) {
      const key = `key ${index % 20}`
      admission.apply({
        key,
        share: Admission.fair,
        granted: () => {
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
  what: Schema.Literals(["apply", "apply", "release", "withdraw"]),
  key: Schema.Literals(["a", "b", "c", "d", "e"]),
  which: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 7 }))
})

interface Applied {
  readonly applicant: Admission.Applicant
  state: "waits" | "holds" | "gone"
}

describe("whatever is applied for, withdrawn and given back", () => {
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
        all.filter(({ applicant, state }) => state === "holds" && (key === undefined || applicant.key === key))
      const waiting = (key?: string) =>
        all.filter(({ applicant, state }) => state === "waits" && (key === undefined || applicant.key === key))
      const take = (applied: Applied) => {
        const { key } = applied.applicant
        const free = permits - holding().length
        assert.isAbove(free, 0)
        assert.isBelow(holding(key).length, free)
        applied.state = "holds"
      }
      for (const { key, what, which } of steps) {
        if (what === "apply") {
          const applied: Applied = {
            applicant: { key, share: Admission.fair, granted: () => take(applied) },
            state: "gone"
          }
          const answer = admission.apply(applied.applicant)
          if (answer === "granted") take(applied)
          if (answer === "waits") applied.state = "waits"
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
          admission.withdraw(applied.applicant)
        }
        const free = permits - holding().length
        const known = new Set([...holding(), ...waiting()].map(({ applicant }) => applicant.key))
        assert.deepStrictEqual(admission.stats(), { free, waiting: waiting().length, keys: known.size })
        for (const { applicant } of waiting()) assert.isFalse(free > 0 && holding(applicant.key).length < free)
      }
      // All that hold give back, until nobody waits: everyone that waited is served.
      for (let held = holding(); held.length > 0; held = holding()) {
        for (const applied of held) {
          applied.state = "gone"
          admission.release(applied.applicant.key)
        }
      }
      assert.deepStrictEqual(admission.stats(), { free: permits, waiting: 0, keys: 0 })
    },
    { arbitrary: { runs: 300 } }
  )
})
