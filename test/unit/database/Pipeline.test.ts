/** Short reads share connections: bounded in number, sent together, and retried elsewhere where one is slow. */
import { assert, it } from "@effect/vitest"
import { Array, Duration, Effect, Exit, Fiber } from "effect"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import { TestClock } from "effect/testing"
import { vi } from "vitest"
import * as Pipeline from "../../../src/database/Pipeline.ts"
import type { Failure } from "../../../src/database/SqlFailure.ts"
import * as Store from "../../../src/database/Store.ts"
import { fakeTimers } from "../../support/fakeTimers.ts"

const dropped = new SqlError({ reason: new ConnectionError({ cause: new Error("of a test"), operation: "query" }) })

/** The row of a statement that runs alone. */
const alone: object = { row: "alone" }

const request = { key: "a", within: Duration.seconds(8), unavailable: ({ _tag }: Failure) => _tag }

/** A short read over a store with one shared connection. */
const reader = Effect.fnUntraced(function* (shared: Pipeline.SharedConnection) {
  const store = yield* Store.make({ name: "store", connections: 2, isCancellable: true, probe: Effect.void })
  const { runShort } = yield* Pipeline.reads(store, Pipeline.make([shared]))
  return { short: runShort(request, ["select 1", []], () => Effect.succeed([alone])) }
})

/** Starts beside the test. */
const begun = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkScoped(Effect.exit(effect), { startImmediately: true })

/** Lets time pass for fibers, and for the deadline of a short read, which is a timer of Node. */
const pass = Effect.fnUntraced(function* (millis: number) {
  // Ends the timer of TestClock's warning.
  yield* TestClock.adjust(0)
  vi.advanceTimersByTime(millis)
  yield* TestClock.adjust(millis)
})

const turn = Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))

it.effect.each([
  ["answered", Effect.succeed([])],
  ["failed", Effect.fail(dropped)],
  ["answered late", Effect.delay(Effect.succeed([]), "150 millis")]
] as const)(
  "a place of a shared connection comes back from a short read that is %s, or whose caller leaves",
  ([, answer]) =>
    Effect.gen(function* () {
      yield* fakeTimers
      let shared = 0
      const run = () =>
        Effect.andThen(
          Effect.sync(() => shared++),
          answer
        )
      const { short } = yield* reader({ run })
      for (let n = 0; n < 40; n++) {
        // Before it is sent, and after.
        for (const wait of [Effect.void, turn]) {
          const leaving = yield* begun(short)
          yield* wait
          yield* Fiber.interrupt(leaving)
          yield* turn
        }
        const staying = yield* begun(short)
        yield* turn
        yield* pass(2000)
        assert.isDefined(staying.pollUnsafe())
      }
      assert.strictEqual(shared, 80)
    })
)

it.effect("after a short read that is slow on a shared connection, others run alone for a second", () =>
  Effect.gen(function* () {
    yield* fakeTimers
    const { short } = yield* reader({ run: () => Effect.delay(Effect.succeed([]), "150 millis") })
    const slow = yield* begun(short)
    yield* turn
    yield* pass(100)
    assert.deepStrictEqual(slow.pollUnsafe(), Exit.succeed(Exit.succeed([alone])))
    assert.deepStrictEqual(yield* short, [alone])
    yield* pass(1000)
    const next = yield* begun(short)
    yield* turn
    assert.isUndefined(next.pollUnsafe())
  })
)

it.effect("a request is told the time of a read on a shared connection", () =>
  Effect.gen(function* () {
    const told: Array<Store.Accounted> = []
    const { short } = yield* reader({ run: () => Effect.delay(Effect.succeed([]), "40 millis") })
    yield* begun(Effect.provideService(short, Store.Accounting, (one) => void told.push(one)))
    yield* turn
    yield* TestClock.adjust("40 millis")
    assert.deepStrictEqual(told, [{ waited: 0, took: 40 }])
  })
)

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
    for (const numbers of [[1, 2, 3], [4]]) {
      const before = sent.length
      for (const n of numbers) pipeline.take(0)?.send(() => sent.push(n))
      assert.lengthOf(sent, before)
      yield* turn
      assert.deepStrictEqual(sent.slice(before), numbers)
    }
  })
)
