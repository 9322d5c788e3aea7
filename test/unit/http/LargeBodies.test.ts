/** The worker thread of large bodies: it keeps the event loop free, has a queue with an end, and is replaced if it dies. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Schedule, Schema } from "effect"
import type * as JsonPruning from "../../../src/http/JsonPruning.ts"
import { wantedBy } from "../../../src/http/JsonPruning.ts"
import { LargeBodiesBusy, run } from "../../../src/http/LargeBodies.ts"

const pruning = new URL("../../../src/http/JsonPruning.ts", import.meta.url)
const wanted = wantedBy(Schema.Struct({ text: Schema.String }))

const prune = (text: string) => run<typeof JsonPruning>(pruning, { body: new TextEncoder().encode(text), wanted })

describe("large bodies", () => {
  it.live("are pruned while the event loop turns", () =>
    Effect.gen(function* () {
      yield* prune("{}")
      let turns = 0
      const ticking = yield* Effect.sync(() => turns++).pipe(
        Effect.repeat(Schedule.spaced("1 millis")),
        Effect.forkChild
      )
      const many = Array.from({ length: 8 }, () => prune(`{"text":"a","x":[${"[],".repeat(500_000)}[]]}`))
      assert.deepStrictEqual(
        yield* Effect.all(many, { concurrency: "unbounded" }),
        many.map(() => ({ value: '{"text":"a","x":null}' }))
      )
      yield* Fiber.interrupt(ticking)
      assert.isAbove(turns, 20)
    })
  )

  it.live("wait for their turn, and no more than 512 of them", () =>
    Effect.gen(function* () {
      const all = Array.from({ length: 600 }, () => Effect.exit(prune("{}")))
      const exits = yield* Effect.all(all, { concurrency: "unbounded" })
      assert.strictEqual(exits.filter(Exit.isSuccess).length, 512)
      assert.deepStrictEqual(yield* prune("{}"), { value: "{}" })
    })
  )

  it.live("are read by another thread after one that failed", () =>
    Effect.gen(function* () {
      const failing = run<{ readonly job: (input: string) => string }>(new URL("nowhere.ts", pruning), "")
      assert.instanceOf(yield* Effect.flip(failing), LargeBodiesBusy)
      assert.deepStrictEqual(yield* prune("{"), {
        detail: [{ loc: ["body", 1], msg: "JSON decode error", type: "json_invalid" }]
      })
    })
  )
})
