/** Shared connections: statements that are sent together, and bounded in number. */
import { assert, it } from "@effect/vitest"
import { Array, Effect } from "effect"
import * as Pipeline from "../../../src/database/Pipeline.ts"

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
