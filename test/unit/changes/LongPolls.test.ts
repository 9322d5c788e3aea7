/** The readers that wait for changes. */
import { assert, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Option } from "effect"
import { TestClock } from "effect/testing"
import { LongPolls } from "../../../src/changes/LongPolls.ts"

const within = Duration.seconds(20)

/** Polls for a result that is there after so many reads. */
const poll = (polls: LongPolls["Service"], count: number) => {
  let reads = 0
  return polls.poll(
    Effect.sync(() => ++reads),
    (read) => read === count,
    within
  )
}

const atOnce = Effect.fnUntraced(function* <A>(polling: Effect.Effect<A>) {
  const fiber = yield* Effect.forkChild(polling, { startImmediately: true })
  return fiber.pollUnsafe() === undefined ? "waits" : yield* Fiber.join(fiber)
})

it.effect("A poll reads once a second, until it finds a result or the time is over", () =>
  Effect.gen(function* () {
    const polls = yield* LongPolls.make
    const found = yield* Effect.forkChild(poll(polls, 3), { startImmediately: true })
    const late = yield* Effect.forkChild(poll(polls, 30), { startImmediately: true })
    yield* TestClock.adjust("2999 millis")
    assert.isUndefined(found.pollUnsafe())
    yield* TestClock.adjust("1 millis")
    assert.deepStrictEqual(yield* Fiber.join(found), Option.some(3))
    yield* TestClock.adjust(within)
    assert.deepStrictEqual(yield* Fiber.join(late), Option.none())
  })
)

it.effect("A poll ends at once beyond 100 others, and once the process stops", () =>
  Effect.gen(function* () {
    const polls = yield* LongPolls.make
    const others = yield* Effect.replicateEffect(Effect.forkChild(poll(polls, 3), { startImmediately: true }), 100)
    assert.deepStrictEqual(yield* atOnce(poll(polls, 3)), Option.none())
    yield* Fiber.interrupt(others[0] ?? (yield* Effect.die("no reader")))
    assert.strictEqual(yield* atOnce(poll(polls, 3)), "waits")
    yield* polls.stop
    assert.deepStrictEqual(yield* Fiber.join(others[1] ?? (yield* Effect.die("no reader"))), Option.none())
    assert.deepStrictEqual(yield* atOnce(poll(polls, 3)), Option.none())
  })
)
