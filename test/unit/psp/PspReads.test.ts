/** Live reads on a TestClock: the retry, the deadline, the limit of an organization, the errors and the log. */
import { assert, it } from "@effect/vitest"
import { Array, Duration, Effect, Fiber, Layer, Random } from "effect"
import { TestClock } from "effect/testing"
import * as Errors from "../../../src/api/Errors.ts"
import * as Psp from "../../../src/psp/PspClient.ts"
import { ClinicAccounts, PspReads } from "../../../src/psp/PspReads.ts"
import { Recorded } from "../../support/Recorded.ts"
import { type Answer, clinic, organization, readBy, readsOver } from "./fakes.ts"

const page: Psp.Page = { data: [{ id: "ch_1" }], hasMore: false }
const found: Answer = Effect.succeed(page)
const refused: Answer = Effect.fail(
  new Psp.PspFailed({ blame: "account", reason: "StripePermissionError 403", request: "req_403" })
)
const limited = (retryAfter: Duration.Input): Answer =>
  Effect.fail(new Psp.RateLimited({ retryAfter: Duration.fromInputUnsafe(retryAfter) }))
const down = (retryAfter = 1) => new Errors.ProcessorDown({ retryAfter })

const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

const times = <A, E, R>(count: number, effect: Effect.Effect<A, E, R>) =>
  Effect.forEach(Array.range(1, count), () => effect)

/** The result of an effect, which has to end at a time from now and not a millisecond before. */
const endsAt = <A, E, R>(millis: number, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const fiber = yield* fork(effect)
    yield* TestClock.adjust(millis - 1)
    assert.isUndefined(fiber.pollUnsafe())
    yield* TestClock.adjust(1)
    assert.isDefined(fiber.pollUnsafe())
    return yield* Fiber.join(fiber)
  })

/** Randomness that is always the same share. */
const jitter = (share: number) =>
  Effect.provideService(Random.Random, { nextIntUnsafe: () => 0, nextDoubleUnsafe: () => share })

it.effect.each([
  ["1 second", 0, 1000],
  ["1 second", 0.996, 1249],
  ["2 seconds", 0, 2000]
] as const)(
  "a rate limit of %s is waited for, with a jitter of %d of 250 ms: one retry after %d ms",
  ([wait, share, at]) =>
    Effect.gen(function* () {
      const { calls, read } = yield* readsOver(limited(wait), found)
      assert.deepStrictEqual(yield* endsAt(at, jitter(share)(read)), page)
      const both = [0, at].map((time) => ({ ...calls[0], at: time }))
      assert.deepStrictEqual(calls, both)
    })
)

it.effect("a rate limit that the retry meets again is an error", () =>
  Effect.gen(function* () {
    const { calls, read } = yield* readsOver(limited("1 second"))
    assert.deepStrictEqual(yield* endsAt(1000, jitter(0)(Effect.flip(read))), down())
    assert.strictEqual(calls.length, 2)
  })
)

it.effect("callers that leave while a rate limit is waited for are no failure of the account", () =>
  Effect.gen(function* () {
    const { calls, read } = yield* readsOver(limited("2 seconds"))
    const leave = Effect.timeoutOption(read, 1500)
    yield* endsAt(15_000, times(10, leave))
    assert.strictEqual(calls.length, 10)
  })
)

const retryAfter = Duration.seconds(10)
it.effect.each([
  [new Psp.CursorUnknown(), new Errors.CursorNotFound()],
  [new Psp.AccountDisconnected(), new Errors.ClinicNotConnected()],
  [new Psp.PspFailed({ blame: "psp", reason: "503" }), down()],
  [new Psp.RateLimited({ retryAfter: Duration.millis(2001) }), down(3)],
  [new Psp.RateLimited({ retryAfter: Duration.seconds(60) }), down(60)],
  [new Psp.RateLimited({ retryAfter: Duration.hours(1) }), down(60)],
  [new Psp.PspFailed({ blame: "unclear", reason: "503", retryAfter }), down(10)]
] as const)("a failure is not retried, Retry-After is at most 60: %s", ([error, expected]) =>
  Effect.gen(function* () {
    const { calls, read } = yield* readsOver(Effect.fail(error), found)
    const fiber = yield* fork(Effect.flip(read))
    assert.isDefined(fiber.pollUnsafe(), "at once")
    assert.deepStrictEqual(yield* Fiber.join(fiber), expected)
    assert.strictEqual(calls.length, 1)
  })
)

it.effect("while a circuit is open, Retry-After lasts until it admits the next call, rounded up", () =>
  Effect.gen(function* () {
    const { calls, read } = yield* readsOver(refused)
    const failures = (count: number) =>
      Effect.map(times(count, Effect.flip(read)), (errors) =>
        errors.map((error) => ("retryAfter" in error ? error.retryAfter : undefined))
      )
    assert.deepStrictEqual(yield* failures(6), [1, 1, 1, 1, 5, 5])
    assert.strictEqual(calls.length, 5)
    const seconds: Array<number | undefined> = []
    for (const wait of [1, 999, 3999]) {
      yield* TestClock.adjust(wait)
      seconds.push(...(yield* failures(1)))
    }
    assert.deepStrictEqual(seconds, [5, 4, 1])
  })
)

it.effect.each([
  ["a call, which is given up", [Effect.never], 1],
  ["the wait after a late rate limit", [Effect.delay(limited("2 seconds"), "7 seconds"), found], 1],
  ["the call after the wait", [limited("2 seconds"), Effect.never], 2]
] as const)("the deadline of 8 seconds ends %s", ([, answers, count]) =>
  Effect.gen(function* () {
    let givenUp = 0
    const counted = answers.map((answer: Answer) => Effect.onInterrupt(answer, () => Effect.sync(() => givenUp++)))
    const { calls, read } = yield* readsOver(...counted)
    assert.deepStrictEqual(yield* endsAt(8000, Effect.flip(read)), down())
    assert.strictEqual(calls.length, count)
    assert.strictEqual(givenUp, answers.at(-1) === Effect.never ? 1 : 0)
  })
)

it.effect("the deadline of 8 seconds includes the look-up of the clinic", () => {
  const slow = Layer.succeed(ClinicAccounts, { find: () => Effect.delay(Effect.succeed("acct_oak"), "1500 millis") })
  const silent = Layer.succeed(Psp.PspClient, { list: () => Effect.never })
  return endsAt(8000, Effect.flip(readBy(organization))).pipe(
    Effect.provide(Layer.provide(PspReads.layer, [slow, silent]))
  )
})

it.effect("An organization has 20 reads in flight; more are refused at once", () =>
  Effect.gen(function* () {
    const { calls, read, readOf } = yield* readsOver(...Array.makeBy(20, () => Effect.never), found)
    const [first, ...others] = yield* Effect.forEach(Array.range(1, 20), () => fork(Effect.exit(read)))
    assert.deepStrictEqual(yield* Effect.flip(read), new Errors.ProcessorBusy())
    assert.strictEqual(calls.length, 20)
    assert.deepStrictEqual(yield* readOf("org_elm"), page)
    yield* Fiber.interrupt(first)
    assert.deepStrictEqual(yield* times(3, read), [page, page, page])
    yield* TestClock.adjust("8 seconds")
    yield* Fiber.joinAll(others)
  })
)

it.effect.each(["acct_ü", "acct_1\r\nx: y", "acct 1", "a".repeat(256), ""])(
  "An account that no header can carry is none, also without a processor: %j",
  (account) =>
    Effect.map(Effect.flip(readBy(organization)), (error) =>
      assert.deepStrictEqual(error, new Errors.ClinicNotConnected())
    ).pipe(Effect.provide(PspReads.layerMemory([{ organization, clinic, account }])))
)

it.effect("The log has a line for each failure, and when a circuit opens or closes, none between", () =>
  Effect.gen(function* () {
    const { logs } = yield* Recorded
    const lines = Effect.sync(() => logs.splice(0).filter((line) => !line.includes('"DEBUG"')))
    const { read } = yield* readsOver(...Array.makeBy(6, () => refused), found)
    const fails = Effect.flip(read)
    yield* times(4, fails)
    const failures = yield* lines
    yield* fails
    const opened = yield* lines
    assert.deepStrictEqual([failures.length, opened.length], [4, 1])
    for (const line of [...failures, ...opened]) {
      for (const word of [organization, clinic, "charges", "req_403", "StripePermissionError 403"])
        assert.include(line, word)
      assert.notInclude(line, "acct_oak")
    }
    assert.include(opened.join(), "Circuit breaker open: ")
    yield* TestClock.adjust("5 seconds")
    yield* times(20, fails)
    assert.deepStrictEqual(yield* lines, [])
    yield* TestClock.adjust("5 seconds")
    yield* times(3, read)
    const closed = yield* lines
    assert.strictEqual(closed.length, 1)
    assert.include(closed.join(), "Circuit breaker closed: ")
  }).pipe(Effect.provide(Recorded.recording.pipe(Layer.provideMerge(Recorded.layer))))
)
