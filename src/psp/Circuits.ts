/**
 * Which reads are made, by what became of the ones before: a circuit for each account, for what that account can cause,
 * and one for the processor, for what hits every account.
 */
import { Cause, Clock, Data, Duration, Effect, Exit, Option } from "effect"
import * as CircuitBreaker from "./CircuitBreaker.ts"
import type { PspError } from "./PspPage.ts"

/** How many failures in a row open a circuit. */
const failures = 5

const options: CircuitBreaker.Options = {
  failures,
  pause: Duration.seconds(5),
  trial: Duration.seconds(1),
  circuits: 10_000
}

/** Milliseconds: a call that is given up sooner says nothing, one that is given up later had hung. */
const patience = 250

/** The one key of the processor's circuit. */
const all = "all"

/**
 * What a call that ended says. `unclear`: a key that is refused may be the account's doing or ours, and only other
 * accounts can tell. `hung`: no answer came, which is held against the account alone.
 */
type Verdict = "answered" | "account" | "processor" | "unclear" | "hung"

const verdicts: Readonly<Record<PspError["_tag"], Verdict>> = {
  CursorUnknown: "answered",
  AccountDisconnected: "answered",
  RateLimited: "answered",
  PspRefused: "answered",
  PspNotConfigured: "answered",
  AccountFailed: "account",
  AccountUnauthorized: "unclear",
  PspUnavailable: "processor"
}

/** An account is not called for now. */
export class CircuitOpen extends Data.TaggedError("CircuitOpen") {}

const now = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos / 1_000_000n))

const errorOf = (exit: Exit.Exit<unknown, PspError>) =>
  Exit.isFailure(exit) ? Option.getOrUndefined(Cause.findErrorOption(exit.cause)) : undefined

const verdictOf = (exit: Exit.Exit<unknown, PspError>, took: number): Verdict | undefined => {
  if (Exit.isSuccess(exit)) return "answered"
  if (Cause.hasInterruptsOnly(exit.cause)) return took < patience ? undefined : "hung"
  const error = errorOf(exit)
  return error === undefined ? undefined : verdicts[error._tag]
}

/** What the log says of a failure. */
export const annotations = (error: PspError | undefined) => ({
  cause: error === undefined ? "no answer in time" : "reason" in error ? error.reason : error._tag,
  ...(error !== undefined && "request" in error && error.request !== undefined
    ? { processor_request: error.request }
    : {})
})

const opened = (what: string, exit: Exit.Exit<unknown, PspError>) =>
  Effect.annotateLogs(
    Effect.logWarning(`${what} is left alone: it failed ${failures} times in a row`),
    annotations(errorOf(exit))
  )

const closed = (what: string) => Effect.logInfo(`${what} answers again`)

const names = { processor: "The payment processor", account: "The processor account of a clinic" } as const

/** Circuits, all of them closed. */
export const make = () => {
  const accounts = CircuitBreaker.make(options)
  const processor = CircuitBreaker.make({ ...options, circuits: 1 })
  // The accounts for which our key was refused since the last answer. Each counts once against the processor.
  const unclear = new Set<string>()

  const millisUntilNext = (account: string, time: number) =>
    Math.max(processor.untilNext(all, time), accounts.untilNext(account, time))

  const refusesKey = (verdict: Verdict, account: string, permit: CircuitBreaker.Permit, time: number) => {
    if (verdict !== "unclear" || (unclear.has(account) && !permit.isTrial)) return false
    if (unclear.size === failures) unclear.clear()
    unclear.add(account)
    return processor.fail(all, permit, time)
  }

  const answered = (permit: CircuitBreaker.Permit) => {
    unclear.clear()
    return processor.succeed(all, permit)
  }

  const guarded = <A, R>(account: string, call: Effect.Effect<A, PspError, R>, started: number) => {
    const ofAll = processor.admit(all, started)
    const ofAccount = accounts.admit(account, started)
    return Effect.onExit(call, (exit) =>
      Effect.gen(function* () {
        const ended = yield* now
        const verdict = verdictOf(exit, ended - started)
        if (verdict === undefined) return
        if (verdict === "answered" || verdict === "account") {
          if (answered(ofAll)) yield* closed(names.processor)
        } else if (
          verdict === "processor" ? processor.fail(all, ofAll, ended) : refusesKey(verdict, account, ofAll, ended)
        ) {
          yield* opened(names.processor, exit)
        }
        if (verdict === "answered") {
          if (accounts.succeed(account, ofAccount)) yield* closed(names.account)
        } else if (verdict !== "processor" && accounts.fail(account, ofAccount, ended)) {
          yield* opened(names.account, exit)
        }
      })
    )
  }

  return {
    /** Whether the processor is called for every account. */
    isUp: Effect.sync(() => !processor.isOpen(all)),
    /** Whether calls for an account are being refused, whoever is to blame. */
    isOpen: (account: string) => Effect.sync(() => processor.isOpen(all) || accounts.isOpen(account)),
    /** How long it is until a call for an account may be made. */
    untilNext: (account: string) => Effect.map(now, (time) => Duration.millis(millisUntilNext(account, time))),
    /** Makes a call for an account, or fails at once. A call that is interrupted after a while counts as a failure. */
    guard:
      (account: string) =>
      <A, R>(call: Effect.Effect<A, PspError, R>): Effect.Effect<A, PspError | CircuitOpen, R> =>
        Effect.flatMap(now, (started): Effect.Effect<A, PspError | CircuitOpen, R> =>
          millisUntilNext(account, started) > 0 ? Effect.fail(new CircuitOpen()) : guarded(account, call, started)
        )
  }
}
