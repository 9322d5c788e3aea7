/**
 * Which calls of the PSP are made, by the outcomes of earlier ones: a circuit breaker for each account, for what that
 * account can cause, and one for the PSP, for what affects every account.
 */
import { Cause, Clock, Data, Duration, Effect, Exit, Option } from "effect"
import * as Throttle from "../database/Throttle.ts"
import * as CircuitBreaker from "./CircuitBreaker.ts"
import type { PspMetrics } from "./PspMetrics.ts"
import type { PspError } from "./PspPage.ts"

const failures = 5

const options: CircuitBreaker.Options = {
  failures,
  openDuration: Duration.seconds(5),
  probeInterval: Duration.seconds(1),
  maximumCircuits: 10_000
}

/** Milliseconds. A call that is interrupted sooner says nothing; one that is interrupted later had hung. */
const hangAfter = 250

/** The one key of the circuit of the PSP. */
const all = "all"

/** How many of the failures that open the circuit of the PSP may be of one organization. */
const mostOfOrganization = 3

/** Whose read a call is for. */
export interface Owner {
  readonly organization: string
  readonly account: string
}

/** What the outcome of a call says of the PSP and of the account. Nothing where it is not set. */
interface Verdict {
  readonly psp?: "success" | "failure" | "suspicion"
  /** For a suspicion: how many of the failures that open the circuit of the PSP may be of one account. */
  readonly mostOfAccount?: number
  readonly account?: "success" | "failure"
}

const up: Verdict = { psp: "success", account: "success" }
const hung: Verdict = { account: "failure" }

const verdicts: Readonly<Record<PspError["_tag"], Verdict>> = {
  CursorUnknown: up,
  AccountDisconnected: up,
  RateLimited: up,
  PspRefused: up,
  PspNotConfigured: up,
  AccountFailed: { psp: "success", account: "failure" },
  AccountUnauthorized: { psp: "suspicion", mostOfAccount: 1, account: "failure" },
  PspErred: { psp: "suspicion", mostOfAccount: 3, account: "failure" },
  PspUnavailable: { psp: "failure" }
}

/** The circuit breaker of the account or of the PSP is open. */
export class CircuitOpen extends Data.TaggedError("CircuitOpen") {}

const now = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos / 1_000_000n))

const errorOf = (exit: Exit.Exit<unknown, PspError>) =>
  Exit.isFailure(exit) ? Option.getOrUndefined(Cause.findErrorOption(exit.cause)) : undefined

const verdictOf = (exit: Exit.Exit<unknown, PspError>, took: number): Verdict => {
  if (Exit.isSuccess(exit)) return up
  if (Cause.hasInterruptsOnly(exit.cause)) return took < hangAfter ? {} : hung
  const error = errorOf(exit)
  return error === undefined ? {} : verdicts[error._tag]
}

/** What the log says of a failure. */
export const annotations = (error: PspError | undefined) => ({
  cause: error === undefined ? "no answer in time" : "reason" in error ? error.reason : error._tag,
  ...(error !== undefined && "request" in error && error.request !== undefined
    ? { processor_request: error.request }
    : {})
})

const logOpened = (name: string, exit: Exit.Exit<unknown, PspError>) =>
  Effect.annotateLogs(
    Effect.logWarning(`Circuit breaker open: ${name} failed ${failures} times in a row`),
    annotations(errorOf(exit))
  )

const logClosed = (name: string) => Effect.logInfo(`Circuit breaker closed: ${name} responds again`)

const dependency = "payment processor"

// A circuit for each account: thousands may open within seconds.
const mostLines = 50

const names = { psp: "the payment processor", account: "the payment processor account of a clinic" } as const

/** Circuits, all of them closed. */
export const make = (metrics: Pick<PspMetrics, "ended" | "outageBegan">) => {
  const accounts = CircuitBreaker.make(options)
  const limit = Throttle.limited(mostLines)
  const psp = CircuitBreaker.make({ ...options, maximumCircuits: 1 })
  // The last calls that failed where the PSP or the account may be the cause, since the PSP last responded. Only other
  // accounts, and other organizations, can tell which it is.
  let suspicions: ReadonlyArray<Owner> = []
  // Of the circuit of the PSP: when it opened, and how many calls it has refused since.
  let openedAt = 0
  let refused = 0

  const millisUntilNext = (account: string, time: number) =>
    Math.max(psp.untilNext(all, time), accounts.untilNext(account, time))

  const countsAgainstPsp = ({ account, organization }: Owner, mostOfAccount = 0) => {
    const ofAccount = suspicions.filter((one) => one.account === account).length
    const ofOrganization = suspicions.filter((one) => one.organization === organization).length
    if (ofAccount >= mostOfAccount || ofOrganization >= mostOfOrganization) return false
    suspicions = [...suspicions, { account, organization }].slice(-failures)
    return true
  }

  const guarded = <A, R>(owner: Owner, call: Effect.Effect<A, PspError, R>, started: number) => {
    const { account } = owner
    const permit = { psp: psp.admit(all, started), account: accounts.admit(account, started) }
    return Effect.onExit(call, (exit) =>
      Effect.gen(function* () {
        const ended = yield* now
        metrics.ended(exit, ended - started)
        const verdict = verdictOf(exit, ended - started)
        if (verdict.psp === "success") {
          suspicions = []
          if (psp.succeed(all, permit.psp)) {
            yield* Effect.annotateLogs(logClosed(names.psp), { dependency, away_ms: ended - openedAt, refused })
          }
        } else if (
          verdict.psp === "failure" ||
          (verdict.psp === "suspicion" && countsAgainstPsp(owner, verdict.mostOfAccount))
        ) {
          if (psp.fail(all, permit.psp, ended)) {
            openedAt = ended
            refused = 0
            metrics.outageBegan()
            yield* Effect.annotateLogs(logOpened(names.psp, exit), { dependency })
          }
        }
        if (verdict.account === "success") {
          if (accounts.succeed(account, permit.account)) yield* limit(logClosed(names.account))
        } else if (verdict.account === "failure") {
          if (accounts.fail(account, permit.account, ended)) yield* limit(logOpened(names.account, exit))
        }
      })
    )
  }

  return {
    /** Whether the PSP is called at all. */
    isUp: Effect.sync(() => !psp.isOpen(all)),
    /** The state of the circuit breakers, for the metrics. */
    state: { isOpen: () => psp.isOpen(all), openAccounts: accounts.open },
    /** Whether calls for an account are being refused, whoever is to blame. */
    isOpen: (account: string) => Effect.sync(() => psp.isOpen(all) || accounts.isOpen(account)),
    /** How long it is until a call for an account may be made. */
    untilNext: (account: string) => Effect.map(now, (time) => Duration.millis(millisUntilNext(account, time))),
    /** Makes a call for an account, or fails at once. A call that is interrupted after a while counts as a failure. */
    guard:
      (owner: Owner) =>
      <A, R>(call: Effect.Effect<A, PspError, R>): Effect.Effect<A, PspError | CircuitOpen, R> =>
        Effect.flatMap(now, (started): Effect.Effect<A, PspError | CircuitOpen, R> => {
          if (millisUntilNext(owner.account, started) === 0) return guarded(owner, call, started)
          if (psp.isOpen(all)) refused++
          return Effect.fail(new CircuitOpen())
        })
  }
}
