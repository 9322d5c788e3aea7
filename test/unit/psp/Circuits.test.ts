/** Whom a failure of the processor shuts out, for how long, and what is said of it. */
import { assert, describe, it } from "@effect/vitest"
import { Array, Duration, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { ClinicNotConnected, ProcessorBusy } from "../../../src/api/Errors.ts"
import { CurrentOrganization } from "../../../src/api/CurrentOrganization.ts"
import { ClinicAccounts } from "../../../src/psp/ClinicAccounts.ts"
import { PspClient } from "../../../src/psp/PspClient.ts"
import {
  AccountFailed,
  AccountUnauthorized,
  type Page,
  PspErred,
  PspRefused,
  PspUnavailable,
  RateLimited
} from "../../../src/psp/PspPage.ts"
import { PspReads, type PspReadError } from "../../../src/psp/PspReads.ts"
import { Recorded } from "../../support/Recorded.ts"
import { type Answer, clinic, organization, readsByAccount, readsOver } from "./fakes.ts"

const page: Page = { data: [{ id: "ch_1" }], hasMore: false }
const answered: Answer = Effect.succeed(page)
const down: Answer = Effect.fail(new PspUnavailable({ reason: "StripeAPIError 500", request: "req_down" }))
const erred: Answer = Effect.fail(new PspErred({ reason: "StripeAPIError 500" }))
const refused: Answer = Effect.fail(new AccountFailed({ reason: "StripePermissionError 403", request: "req_403" }))
const unauthorized: Answer = Effect.fail(new AccountUnauthorized({ reason: "StripeAuthenticationError 401" }))

const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

/** The error of a read, after its deadline if it hangs. */
const failureOf = <A, E, R>(read: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const fiber = yield* fork(Effect.flip(read))
    if (fiber.pollUnsafe() === undefined) yield* TestClock.adjust("8 seconds")
    return yield* Fiber.join(fiber)
  })

const times = <A, E, R>(count: number, effect: Effect.Effect<A, E, R>) =>
  Effect.forEach(Array.range(1, count), () => effect)

/** After how many seconds a read that is answered with 503 says to try again. */
const retryAfter = <A, R>(read: Effect.Effect<A, PspReadError, R>) =>
  Effect.map(failureOf(read), (error) => (error._tag === "ProcessorDown" ? (error.retryAfter ?? 1) : error._tag))

/** Reads, and leaves after a time. */
const leave = <A, E, R>(read: Effect.Effect<A, E, R>, after: Duration.Input) =>
  Effect.gen(function* () {
    const fiber = yield* fork(read)
    yield* TestClock.adjust(after)
    yield* Fiber.interrupt(fiber)
  })

describe("an account", () => {
  it.effect.each([
    ["for which the processor refuses", refused],
    ["for which the processor fails or answers nonsense", erred],
    ["for which the processor does not take our key", unauthorized],
    ["for which the processor never answers", Effect.never]
  ] as const)("%s has its circuit breaker opened by five failures in a row, and no other account has", ([, failing]) =>
    Effect.gen(function* () {
      const { calls, isUp, readOf } = yield* readsByAccount({ bad: failing, good: answered })
      yield* times(5, failureOf(readOf("bad")))
      assert.strictEqual(calls.length, 5)
      yield* times(20, failureOf(readOf("bad")))
      assert.strictEqual(calls.length, 5)
      assert.isTrue(yield* isUp)
      assert.deepStrictEqual(yield* times(3, readOf("good")), [page, page, page])
    })
  )

  it.effect("that fails is what its clinics share: another clinic of it is refused too", () =>
    Effect.gen(function* () {
      const { calls, read, readOf } = yield* readsByAccount({ acct_oak: refused })
      yield* times(5, failureOf(readOf("acct_oak")))
      yield* failureOf(read)
      assert.strictEqual(calls.length, 5)
    })
  )

  it.effect("is answered for again after the pause", () =>
    Effect.gen(function* () {
      const { calls, read } = yield* readsOver(refused, refused, refused, refused, refused, answered)
      yield* times(5, failureOf(read))
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* times(3, read), [page, page, page])
      assert.strictEqual(calls.length, 8)
    })
  )

  it.effect.each([250, 1000, 7000])(
    "that hangs has its circuit breaker opened when five callers left after %d ms each",
    (millis) =>
      Effect.gen(function* () {
        const { calls, isUp, readOf } = yield* readsByAccount({ bad: Effect.never, good: answered })
        yield* times(5, leave(readOf("bad"), millis))
        yield* failureOf(readOf("bad"))
        assert.strictEqual(calls.length, 5)
        assert.isTrue(yield* isUp)
        yield* readOf("good")
      })
  )

  it.effect("is not blamed for callers that leave before it could have answered", () =>
    Effect.gen(function* () {
      const { calls, readOf } = yield* readsByAccount({ slow: Effect.never })
      yield* times(20, leave(readOf("slow"), 200))
      assert.strictEqual(calls.length, 20)
    })
  )

  it.effect("is not blamed for a caller that leaves while it waits out a rate limit", () =>
    Effect.gen(function* () {
      const limited = Effect.fail(new RateLimited({ retryAfter: Duration.seconds(2) }))
      const { calls, read } = yield* readsOver(limited)
      yield* times(10, leave(read, 1500))
      assert.strictEqual(calls.length, 10)
    })
  )

  it.effect.each(["acct_ü", "acct_1\r\nx: y", "acct 1", "acct_\u0000", "a".repeat(256), "", " ", "\u00a0"])(
    "that no header can carry is no account: %j",
    (account) =>
      Effect.gen(function* () {
        const { calls, readOf } = yield* readsByAccount({ [account]: answered, good: answered })
        for (const error of yield* times(10, failureOf(readOf(account)))) {
          assert.deepStrictEqual(error, new ClinicNotConnected())
        }
        assert.strictEqual(calls.length, 0)
      })
  )
})

describe("the processor", () => {
  const accounts = ["a", "b", "c", "d", "e", "f"]
  const organizations = [organization, "org_elm"]
  const allOf = (answer: Answer) => Object.fromEntries(accounts.map((account) => [account, answer]))

  it.effect("is called for no account once its circuit breaker is open, whichever accounts opened it", () =>
    Effect.gen(function* () {
      const { calls, isUp, readOf } = yield* readsByAccount({ ...allOf(down), good: answered })
      for (const account of ["a", "b", "a", "b", "c"]) yield* failureOf(readOf(account))
      assert.isFalse(yield* isUp)
      assert.strictEqual(yield* retryAfter(readOf("good")), 5)
      assert.strictEqual(calls.length, 5)
    })
  )

  it.effect(
    "has its circuit breaker opened when five accounts in a row, of several organizations, have our key refused",
    () =>
      Effect.gen(function* () {
        const { calls, isUp, readOf } = yield* readsByAccount({ ...allOf(unauthorized), good: answered }, organizations)
        for (const account of ["a", "b", "a", "b", "c", "d", "e"]) yield* failureOf(readOf(account))
        assert.isTrue(yield* isUp)
        for (const account of ["e", "f"]) yield* failureOf(readOf(account, "org_elm"))
        assert.isFalse(yield* isUp)
        yield* failureOf(readOf("good"))
        assert.strictEqual(calls.length, 9)
      })
  )

  it.effect("has its circuit breaker opened by failures for several accounts of several organizations", () =>
    Effect.gen(function* () {
      const { calls, isUp, readOf } = yield* readsByAccount({ ...allOf(erred), good: answered }, organizations)
      yield* times(4, failureOf(readOf("a")))
      yield* failureOf(readOf("b", "org_elm"))
      assert.isTrue(yield* isUp)
      yield* failureOf(readOf("b", "org_elm"))
      assert.isFalse(yield* isUp)
      assert.strictEqual(yield* retryAfter(readOf("good")), 5)
      assert.strictEqual(calls.length, 6)
    })
  )

  it.effect.each([
    ["one account", ["a"], ["org_oak"]],
    ["one account of several organizations", ["a"], organizations],
    ["several accounts of one organization", accounts, ["org_oak"]]
  ] as const)("is not blamed for failures of %s", ([, failing, owners]) =>
    Effect.gen(function* () {
      const { isUp, readOf } = yield* readsByAccount({ ...allOf(erred), good: answered }, organizations)
      yield* times(
        3,
        Effect.forEach(failing, (account) =>
          Effect.forEach(owners, (owner) => times(2, failureOf(readOf(account, owner))))
        )
      )
      assert.isTrue(yield* isUp)
      assert.deepStrictEqual(yield* readOf("good", "org_elm"), page)
    })
  )

  it.effect("that is up again is not shut out any longer by an account whose probes fail", () =>
    Effect.gen(function* () {
      const { isUp, readOf } = yield* readsByAccount({ ...allOf(erred), good: answered }, organizations)
      yield* times(4, failureOf(readOf("a")))
      yield* times(2, failureOf(readOf("b", "org_elm")))
      assert.isFalse(yield* isUp)
      yield* TestClock.adjust("5 seconds")
      yield* failureOf(readOf("a"))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* readOf("good"), page)
      assert.isTrue(yield* isUp)
    })
  )

  it.effect.each([
    ["answered for another", answered],
    ["refused another", refused],
    ["did not take a request", Effect.fail(new PspRefused({ reason: "parameter" }))]
  ] as const)("is not blamed for accounts that have our key refused when it %s in between", ([, between]) =>
    Effect.gen(function* () {
      const { isUp, readOf } = yield* readsByAccount({ ...allOf(unauthorized), between }, organizations)
      for (const [index, account] of ["a", "b", "c", "d", "between", "e", "f", "a", "b"].entries()) {
        const read = readOf(account, organizations[index % 2])
        yield* Effect.exit(failureOf(Effect.andThen(read, Effect.fail("answered"))))
      }
      assert.isTrue(yield* isUp)
    })
  )

  it.effect("is not blamed for accounts that hang, however many", () =>
    Effect.gen(function* () {
      const { isUp, readOf } = yield* readsByAccount({ ...allOf(Effect.never), good: answered })
      for (const account of [...accounts, ...accounts]) yield* failureOf(readOf(account))
      assert.isTrue(yield* isUp)
      assert.deepStrictEqual(yield* readOf("good"), page)
    })
  )

  it.effect("that is up again is found out by the next caller when the first probe hangs", () =>
    Effect.gen(function* () {
      const { calls, isUp, read } = yield* readsOver(down, down, down, down, down, Effect.never, answered)
      yield* times(5, failureOf(read))
      yield* TestClock.adjust("5 seconds")
      const probe = yield* fork(Effect.flip(read))
      assert.strictEqual(yield* retryAfter(read), 1)
      yield* TestClock.adjust("1 second")
      assert.isUndefined(probe.pollUnsafe())
      assert.deepStrictEqual(yield* times(3, read), [page, page, page])
      assert.isTrue(yield* isUp)
      yield* TestClock.adjust("7 seconds")
      yield* Fiber.join(probe)
      assert.isTrue(yield* isUp)
      assert.strictEqual(calls.length, 9)
    })
  )

  it.effect("that is slow is let in again by a probe, however long that takes", () =>
    Effect.gen(function* () {
      const { isUp, read } = yield* readsOver(down, down, down, down, down, Effect.delay(answered, "7 seconds"))
      yield* times(5, failureOf(read))
      yield* TestClock.adjust("5 seconds")
      const probe = yield* fork(read)
      yield* TestClock.adjust("7 seconds")
      assert.deepStrictEqual(yield* Fiber.join(probe), page)
      assert.isTrue(yield* isUp)
    })
  )

  it.effect("is tried by another caller soon after the one that tried has left", () =>
    Effect.gen(function* () {
      const { isUp, read } = yield* readsOver(down, down, down, down, down, Effect.never, answered)
      yield* times(5, failureOf(read))
      yield* TestClock.adjust("5 seconds")
      yield* leave(read, 100)
      yield* TestClock.adjust(900)
      assert.deepStrictEqual(yield* read, page)
      assert.isTrue(yield* isUp)
    })
  )
})

describe("Retry-After", () => {
  it.effect("is when the circuit lets the next read through, rounded up", () =>
    Effect.gen(function* () {
      const { read } = yield* readsOver(refused)
      assert.deepStrictEqual(yield* times(6, retryAfter(read)), [1, 1, 1, 1, 5, 5])
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* retryAfter(read), 5)
      yield* TestClock.adjust(999)
      assert.strictEqual(yield* retryAfter(read), 4)
      yield* TestClock.adjust(3999)
      assert.strictEqual(yield* retryAfter(read), 1)
    })
  )

  it.effect.each([
    ["2.1 seconds", 3],
    ["10 seconds", 10],
    ["60 seconds", 60],
    ["1 hour", 60]
  ] as const)("is what the processor said, at most a minute: %s", ([said, seconds]) =>
    Effect.gen(function* () {
      const limited = yield* readsOver(Effect.fail(new RateLimited({ retryAfter: Duration.fromInputUnsafe(said) })))
      assert.strictEqual(yield* retryAfter(limited.read), seconds)
      const unavailable = { reason: "503", retryAfter: Duration.fromInputUnsafe(said) }
      const { read } = yield* readsOver(Effect.fail(new PspUnavailable(unavailable)))
      assert.strictEqual(yield* retryAfter(read), seconds)
    })
  )
})

describe("an organization", () => {
  it.effect("has 20 reads under way at most, whichever clinics; what is more is refused at once", () =>
    Effect.gen(function* () {
      const { calls, readOf } = yield* readsByAccount({ a: Effect.never, b: Effect.never, good: answered }, [
        organization,
        "org_other"
      ])
      const under = yield* Effect.forEach(Array.range(1, 20), (index) =>
        fork(Effect.exit(readOf(index % 2 === 0 ? "a" : "b")))
      )
      const [first] = under
      const error = yield* Effect.flip(readOf("good"))
      assert.deepStrictEqual(error, new ProcessorBusy())
      assert.strictEqual(calls.length, 20)
      assert.deepStrictEqual(yield* readOf("good", "org_other"), page)
      yield* Fiber.interrupt(first)
      assert.deepStrictEqual(yield* readOf("good"), page)
      yield* TestClock.adjust("8 seconds")
      yield* Fiber.joinAll(under.slice(1))
      assert.deepStrictEqual(yield* readOf("good"), page)
    })
  )

  it.effect("has 8 seconds for a read, the look-up of the clinic included", () =>
    Effect.gen(function* () {
      const reads = yield* PspReads
      const fiber = yield* fork(
        Effect.flip(reads.read("charges", clinic, { limit: 1 })).pipe(
          Effect.provideService(CurrentOrganization, CurrentOrganization.known(organization))
        )
      )
      yield* TestClock.adjust(7999)
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.isDefined(fiber.pollUnsafe())
    }).pipe(
      Effect.provide(
        PspReads.layer.pipe(
          Layer.provide([
            Layer.succeed(
              ClinicAccounts,
              ClinicAccounts.of({ find: () => Effect.delay(Effect.succeed("acct_oak"), "1500 millis") })
            ),
            Layer.succeed(PspClient, PspClient.of({ list: () => Effect.never }))
          ])
        )
      )
    )
  )
})

describe("the log", () => {
  it.effect("says that a circuit opened, and that it closed, and nothing of the reads between", () =>
    Effect.gen(function* () {
      const { logs } = yield* Recorded
      const said = Effect.sync(() => logs.splice(0).filter((line) => !line.includes('"DEBUG"')))
      const { read } = yield* readsOver(refused, refused, refused, refused, refused, refused, answered)
      yield* times(4, failureOf(read))
      const failures = yield* said
      assert.strictEqual(failures.length, 4)
      yield* failureOf(read)
      const opened = yield* said
      assert.strictEqual(opened.length, 1)
      for (const line of [...failures, ...opened]) {
        for (const word of [organization, clinic, "charges", "req_403", "StripePermissionError 403"]) {
          assert.include(line, word)
        }
        assert.notInclude(line, "acct_oak")
      }
      assert.include(opened.join(), "Circuit breaker open: ")
      yield* times(20, failureOf(read))
      yield* TestClock.adjust("5 seconds")
      yield* times(20, failureOf(read))
      assert.deepStrictEqual(yield* said, [])
      yield* TestClock.adjust("5 seconds")
      yield* times(3, read)
      const closed = yield* said
      assert.strictEqual(closed.length, 1)
      assert.include(closed.join(), "Circuit breaker closed: ")
    }).pipe(Effect.provide(Recorded.recording.pipe(Layer.provideMerge(Recorded.layer))))
  )
})
