/** Connections are shared fairly between keys, and statements that are sent together on one are bounded in number. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Array, Effect, Schema } from "effect"
import * as Admission from "../../../src/database/Admission.ts"
import * as Pipeline from "../../../src/database/Pipeline.ts"

const make = (permits: number, waitingPerKey = 100, waiting = 1000) =>
  Admission.make({ permits, waitingPerKey, waiting })

/** Requests so many connections for a key. Returns how many it took at once. */
const flood = (admission: Admission.Admission, key: string, times: number, served: Array<string> = []) => {
  const start = () => {
    // Without a bound, a waiter that stays in the queue would be served for ever.
    if (served.push(key) > 1000) throw new Error("A waiter was served again")
  }
  const request = () => admission.request({ key, share: Admission.fair, start })
  return Array.makeBy(times, request).filter((answer) => answer === "taken").length
}

describe("the connections of a pool", () => {
  it("are given to waiting keys in turn", () => {
    const admission = make(1)
    const served: Array<string> = []
    for (const key of ["a", "a", "a", "a", "b", "b", "c"]) flood(admission, key, 1, served)
    for (const key of ["a", "a", "b", "c", "a", "b"]) admission.release(key)
    assert.deepStrictEqual(served, ["a", "b", "c", "a", "b", "a"])
  })

  it.each([
    ["fair", Admission.fair, [5, 3, 1]],
    ["nearly all", Admission.nearlyAll, [8, 1, 1]],
    ["at most two", Admission.atMost(2), [2, 4, 2]]
  ] as const)("are shared: %s", (_, share, expected) => {
    const admission = make(10)
    const request = () => admission.request({ key: "worker", share, start: () => undefined })
    const taken = Array.makeBy(10, request).filter((answer) => answer === "taken")
    assert.deepStrictEqual([taken.length, flood(admission, "a", 5), flood(admission, "b", 5)], [...expected])
  })

  const Step = Schema.Struct({
    what: Schema.Literals(["request", "request", "release", "withdraw"]),
    key: Schema.Literals(["a", "b", "c", "d", "e"]),
    which: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 7 }))
  })

  it.prop(
    "are never lost nor lent twice, no key takes the last ones from the others, nobody waits who could be served, and queues are bounded",
    {
      permits: Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 12 }))),
      steps: Arbitrary.schema(Schema.Array(Step).check(Schema.isMaxLength(120)))
    },
    ({ permits, steps }) => {
      const admission = make(permits, 3, 5)
      const states = new Map<Admission.Waiter, "queued" | "holds">()
      const inState = (state: "queued" | "holds", key?: string) =>
        [...states].flatMap(([waiter, its]) => (its === state && (key ?? waiter.key) === waiter.key ? [waiter] : []))
      const take = (waiter: Admission.Waiter) => {
        const free = permits - inState("holds").length
        assert.isAbove(free, 0)
        assert.isBelow(inState("holds", waiter.key).length, free)
        states.set(waiter, "holds")
      }
      const release = (waiter: Admission.Waiter | undefined) => {
        if (waiter === undefined) return
        states.delete(waiter)
        admission.release(waiter.key)
      }
      for (const { key, what, which } of steps) {
        if (what === "request") {
          const waiter: Admission.Waiter = { key, share: Admission.fair, start: () => take(waiter) }
          const answer = admission.request(waiter)
          if (answer === "taken") take(waiter)
          else {
            const isFull = inState("queued", key).length === 3 || inState("queued").length === 5
            assert.strictEqual(answer, isFull ? "refused" : "queued")
            if (!isFull) states.set(waiter, "queued")
          }
        } else if (what === "release") release(inState("holds", key)[0])
        else {
          const waiter = inState("queued", key)[which]
          if (waiter === undefined) continue
          states.delete(waiter)
          admission.withdraw(waiter)
        }
        const free = permits - inState("holds").length
        const keys = new Set([...states.keys()].map((waiter) => waiter.key)).size
        assert.deepStrictEqual(admission.stats(), { free, waiting: inState("queued").length, keys })
        for (const waiter of inState("queued")) assert.isAtLeast(inState("holds", waiter.key).length, free)
      }
      // All that hold give back, until nobody waits: everyone that waited is served.
      for (let round = 0; inState("holds").length > 0; round++) {
        assert.isBelow(round, 200)
        inState("holds").forEach(release)
      }
      assert.deepStrictEqual(admission.stats(), { free: permits, waiting: 0, keys: 0 })
    },
    { arbitrary: { runs: 300 } }
  )
})

/** A connection that nothing is sent on. */
const silent = { run: () => Effect.never }

it("a shared connection has 16 unanswered statements at most, takes 64 before all are answered, and rests for a second", () => {
  const pipeline = Pipeline.make([silent])
  const taken = Array.range(1, 100).flatMap(() => pipeline.take(0) ?? [])
  assert.lengthOf(taken, 16)
  for (const { answered } of taken.slice(1)) answered()
  let count = 16
  for (let next = pipeline.take(0); next !== undefined && count < 1000; next = pipeline.take(0)) {
    next.answered()
    count += 1
  }
  assert.strictEqual(count, 64)
  assert.strictEqual(pipeline.busy(), 1)
  taken[0]?.answered()
  assert.strictEqual(pipeline.busy(), 0)
  assert.isDefined(pipeline.take(0))
  pipeline.rest(0)
  assert.isUndefined(pipeline.take(999))
  assert.isDefined(pipeline.take(1000))
})

it.effect("statements of one turn of the event loop are sent together at its end", () =>
  Effect.gen(function* () {
    const pipeline = Pipeline.make([silent])
    const sent: Array<number> = []
    const turn = Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))
    for (const numbers of [[1, 2, 3], [4]]) {
      const before = sent.length
      for (const n of numbers) pipeline.take(0)?.send(() => sent.push(n))
      assert.lengthOf(sent, before)
      yield* turn
      assert.deepStrictEqual(sent.slice(before), numbers)
    }
  })
)
