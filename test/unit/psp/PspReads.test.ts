/** Live reads under a clock of their own: the one retry, the deadline and the circuit of the processor. */
import { assert, describe, it } from "@effect/vitest"
import { Array, Duration, Effect, Fiber, Random } from "effect"
import { TestClock } from "effect/testing"
import { ClinicNotConnected, CursorNotFound, ProcessorDown, ProcessorNotConfigured } from "../../../src/api/Errors.ts"
import {
  AccountDisconnected,
  AccountFailed,
  AccountUnauthorized,
  CursorUnknown,
  type Page,
  PspNotConfigured,
  PspRefused,
  PspUnavailable,
  RateLimited
} from "../../../src/psp/PspPage.ts"
import type { PspReadError } from "../../../src/psp/PspReads.ts"
import { type Answer, readsOver } from "./fakes.ts"

const page: Page = { data: [{ id: "ch_1" }], hasMore: false }
const answered: Answer = Effect.succeed(page)
const down: Answer = Effect.fail(new PspUnavailable({ reason: "down" }))
const limited = (retryAfter: Duration.Input): Answer =>
  Effect.fail(new RateLimited({ retryAfter: Duration.fromInputUnsafe(retryAfter) }))

/** A processor that never answers, and how often a call was given up. */
const silent = () => {
  const state = { givenUp: 0 }
  return { state, answer: Effect.onInterrupt(Effect.never, () => Effect.sync(() => void (state.givenUp += 1))) }
}

/** Randomness that always says the same. */
const jitter = (share: number) =>
  Effect.provideService(Random.Random, { nextIntUnsafe: () => 0, nextDoubleUnsafe: () => share })

const times = (calls: ReadonlyArray<{ readonly at: number }>) => calls.map(({ at }) => at)

/** Asserts that a read ends at a time from now, and not a millisecond before. */
const endsAt = <A, E>(millis: number, fiber: Fiber.Fiber<A, E>) =>
  Effect.gen(function* () {
    yield* TestClock.adjust(millis - 1)
    assert.isUndefined(fiber.pollUnsafe())
    yield* TestClock.adjust(1)
    assert.isDefined(fiber.pollUnsafe())
  })

const fails = (read: Effect.Effect<Page, PspReadError>, expected: PspReadError) =>
  Effect.map(Effect.flip(read), (error) => assert.deepStrictEqual(error, expected))

const failures = (read: Effect.Effect<Page, PspReadError>, count: number) =>
  Effect.forEach(Array.range(1, count), () => fails(read, new ProcessorDown({ retryAfter: 1 })), { discard: true })

describe("a rate limit", () => {
  it.effect.each([
    [0, 1000],
    [0.5, 1125],
    [0.996, 1249]
  ] as const)("is waited for with jitter before the one retry: %d of it, after %d ms", ([share, millis]) =>
    Effect.gen(function* () {
      const { calls, read } = yield* readsOver(limited("1 second"), answered)
      const fiber = yield* Effect.forkChild(jitter(share)(read), { startImmediately: true })
      yield* endsAt(millis, fiber)
      assert.deepStrictEqual(yield* Fiber.join(fiber), page)
      assert.deepStrictEqual(times(calls), [0, millis])
      assert.deepStrictEqual({ ...calls[0], at: 0 }, { ...calls[1], at: 0 })
    })
  )

  it.effect("of two seconds is still waited for", () =>
    Effect.gen(function* () {
      const { calls, read } = yield* readsOver(limited("2 seconds"), answered)
      const fiber = yield* Effect.forkChild(jitter(0)(read), { startImmediately: true })
      yield* endsAt(2000, fiber)
      assert.deepStrictEqual(times(calls), [0, 2000])
    })
  )

  it.effect.each([2001, 60_000])("of %d ms, which is longer than that, is an error at once", (millis) =>
    Effect.gen(function* () {
      const { calls, read } = yield* readsOver(limited(millis), answered)
      yield* fails(read, new ProcessorDown({ retryAfter: 1 }))
      assert.strictEqual(calls.length, 1)
    })
  )

  it.effect("that comes again after the retry is an error, without another retry", () =>
    Effect.gen(function* () {
      const { calls, read } = yield* readsOver(limited("1 second"))
      const fiber = yield* Effect.forkChild(jitter(0)(fails(read, new ProcessorDown({ retryAfter: 1 }))), {
        startImmediately: true
      })
      yield* endsAt(1000, fiber)
      yield* Fiber.join(fiber)
      assert.strictEqual(calls.length, 2)
    })
  )

  it.effect.each([
    ["after a late answer, the wait", Effect.delay(limited("2 seconds"), "7 seconds"), answered, 1],
    ["the call after the wait", limited("2 seconds"), Effect.never, 2]
  ] as const)("does not move the deadline: it cuts short %s", ([, first, second, count]) =>
    Effect.gen(function* () {
      const { calls, read } = yield* readsOver(first, second)
      const fiber = yield* Effect.forkChild(fails(read, new ProcessorDown({ retryAfter: 1 })), {
        startImmediately: true
      })
      yield* endsAt(8000, fiber)
      yield* Fiber.join(fiber)
      assert.strictEqual(calls.length, count)
    })
  )
})

describe("a failure of the processor", () => {
  it.effect.each([
    ["a cursor that it does not know", new CursorUnknown(), new CursorNotFound()],
    ["an account that is not connected any more", new AccountDisconnected(), new ClinicNotConnected()],
    ["being down", new PspUnavailable({ reason: "acct_oak" }), new ProcessorDown({ retryAfter: 1 })],
    ["a request that it does not take", new PspRefused({ reason: "acct_oak" }), new ProcessorDown({ retryAfter: 1 })],
    ["not answering for an account", new AccountFailed({ reason: "acct_oak" }), new ProcessorDown({ retryAfter: 1 })],
    [
      "not taking our key for an account",
      new AccountUnauthorized({ reason: "acct_oak" }),
      new ProcessorDown({ retryAfter: 1 })
    ],
    ["not being configured", new PspNotConfigured(), new ProcessorNotConfigured()]
  ] as const)("is not retried, and answered as decided: %s", ([, error, expected]) =>
    Effect.gen(function* () {
      const { calls, read } = yield* readsOver(Effect.fail(error), answered)
      yield* fails(read, expected)
      assert.strictEqual(calls.length, 1)
    })
  )

  it.effect("to answer within 8 seconds is an error at that moment, and the call is given up", () =>
    Effect.gen(function* () {
      const { state, answer } = silent()
      const { read } = yield* readsOver(answer)
      const fiber = yield* Effect.forkChild(fails(read, new ProcessorDown({ retryAfter: 1 })), {
        startImmediately: true
      })
      yield* endsAt(8000, fiber)
      yield* Fiber.join(fiber)
      assert.strictEqual(state.givenUp, 1)
    })
  )

  it.effect("is nothing that a caller waits for: one that leaves at once gives the call up, and is no failure", () =>
    Effect.gen(function* () {
      const { state, answer } = silent()
      const { isUp, read } = yield* readsOver(answer)
      for (const count of Array.range(1, 10)) {
        const fiber = yield* Effect.forkChild(read, { startImmediately: true })
        yield* Fiber.interrupt(fiber)
        assert.strictEqual(state.givenUp, count)
      }
      assert.isTrue(yield* isUp)
    })
  )
})

describe("the circuit of the processor", () => {
  it.effect("opens after five failures in a row: the processor is not called, and is not up", () =>
    Effect.gen(function* () {
      const { calls, isUp, read } = yield* readsOver(down)
      yield* failures(read, 4)
      assert.isTrue(yield* isUp)
      yield* failures(read, 1)
      assert.isFalse(yield* isUp)
      yield* failures(read, 100)
      assert.strictEqual(calls.length, 5)
    })
  )

  it.effect.each([
    ["cursors that it does not know", new CursorUnknown()],
    ["accounts that are not connected", new AccountDisconnected()],
    ["too many requests", new RateLimited({ retryAfter: Duration.minutes(1) })],
    ["requests that it does not take", new PspRefused({ reason: "parameter" })],
    ["not being configured", new PspNotConfigured()]
  ] as const)("is not opened by %s", ([, error]) =>
    Effect.gen(function* () {
      const { calls, isUp, read } = yield* readsOver(Effect.fail(error))
      for (const _ of Array.range(1, 20)) yield* Effect.exit(read)
      assert.strictEqual(calls.length, 20)
      assert.isTrue(yield* isUp)
    })
  )

  it.effect("is not opened by failures with a success among each five", () =>
    Effect.gen(function* () {
      const four = [down, down, down, down]
      const { calls, isUp, read } = yield* readsOver(...four, answered, ...four, answered)
      yield* failures(read, 4)
      yield* read
      yield* failures(read, 4)
      assert.deepStrictEqual(yield* read, page)
      assert.isTrue(yield* isUp)
      assert.strictEqual(calls.length, 10)
    })
  )

  it.effect("stays open for five seconds, then lets one call through, and closes when that succeeds", () =>
    Effect.gen(function* () {
      const { calls, isUp, read } = yield* readsOver(down, down, down, down, down, Effect.delay(answered, "1 second"))
      yield* failures(read, 5)
      yield* TestClock.adjust(4999)
      yield* failures(read, 1)
      assert.strictEqual(calls.length, 5)
      yield* TestClock.adjust(1)
      const probe = yield* Effect.forkChild(read, { startImmediately: true })
      assert.strictEqual(calls.length, 6)
      yield* failures(read, 3)
      assert.strictEqual(calls.length, 6)
      assert.isFalse(yield* isUp)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(probe), page)
      assert.isTrue(yield* isUp)
      const next = yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(read, { startImmediately: true }))
      assert.strictEqual(calls.length, 9)
      yield* TestClock.adjust("1 second")
      yield* Fiber.joinAll(next)
    })
  )

  it.effect("stays open for five more seconds when that call fails, and one success closes it for good", () =>
    Effect.gen(function* () {
      const { calls, isUp, read } = yield* readsOver(down, down, down, down, down, down, answered, down, answered)
      yield* failures(read, 5)
      yield* TestClock.adjust("5 seconds")
      yield* failures(read, 3)
      assert.strictEqual(calls.length, 6)
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* read, page)
      yield* failures(read, 1)
      assert.isTrue(yield* isUp)
      assert.deepStrictEqual(yield* read, page)
      assert.deepStrictEqual(times(calls), [0, 0, 0, 0, 0, 5000, 10_000, 10_000, 10_000])
    })
  )
})
