/**
 * The circuit breakers of the PSP: one for each account, for failures that the account can cause, and one for the PSP.
 *
 * After several failures in a row a circuit opens and refuses calls for a while. Then it lets probes through, and the
 * first that succeeds closes it. Probes are paced, not exclusive as those of `effect/persistence`: there, a probe that
 * hangs keeps its circuit open.
 */
import { Cause, Data, Duration, Effect, Exit, Iterable, Option } from "effect"
import * as Time from "../process/Time.ts"
import * as Throttle from "../observability/Throttle.ts"
import { processorOutcomes } from "../observability/Metrics.ts"
import * as Series from "../observability/Series.ts"
import type { PspError, PspFailed } from "./PspClient.ts"

const failures = 5

/** Of the failures that open the circuit of the PSP: at most so many of one organization whose account may be to blame. */
const mostOfOrganization = 3

/** Past this number, the circuit that failed longest ago is forgotten. */
const maximumCircuits = 10_000

// Milliseconds.
const openDuration = 5000
const probeInterval = 1000
/** A call that is interrupted sooner says nothing; a call that is interrupted later had hung. */
const hangAfter = 250

export interface Owner {
  readonly organization: string
  readonly account: string
}

/** A circuit with failures. One without is not kept. */
interface Circuit {
  /** The owners of the last failures in a row. */
  readonly suspects: ReadonlyArray<Owner>
  /** Undefined while the circuit is closed. */
  readonly opening: { nextAt: number } | undefined
}

/** The result of a call for its circuit. `mayFail`: its account may be to blame. `mayFailOnce`: an account counts once. */
type Result = "works" | "fails" | "mayFail" | "mayFailOnce"

/** Circuits by key, all of them closed. Times are milliseconds of any one clock. */
export const makeBreaker = () => {
  const circuits = new Map<string, Circuit>()
  const openingOf = (key: string) => circuits.get(key)?.opening
  return {
    isOpen: (key: string) => openingOf(key) !== undefined,
    openCircuits: () => Iterable.size(Iterable.filter(circuits.values(), ({ opening }) => opening !== undefined)),
    /** Milliseconds until a call of a key may be made; 0 when it may be made now. */
    untilNext: (key: string, now: number) => Math.max(0, (openingOf(key)?.nextAt ?? now) - now),
    /**
     * Admits a call of an owner, which `untilNext` has to allow. The result settles it, and tells how that changed the
     * circuit. It counts only while the circuit is as it was when the call was admitted.
     */
    admit: (key: string, owner: Owner, now: number) => {
      const opening = openingOf(key)
      if (opening !== undefined) opening.nextAt = now + probeInterval
      return (result: Result | undefined, ended: number): "opened" | "closed" | undefined => {
        if (result === undefined || openingOf(key) !== opening) return undefined
        const before = circuits.get(key)?.suspects ?? []
        const ofOrganization = before.filter(({ organization }) => organization === owner.organization)
        const isSuspected = before.some(({ account }) => account === owner.account)
        if (result === "mayFailOnce" && isSuspected) return undefined
        if (result.startsWith("may") && ofOrganization.length >= mostOfOrganization) return undefined
        circuits.delete(key)
        if (result === "works") return opening && "closed"
        const suspects = [...before, owner].slice(-failures)
        const isOpen = opening !== undefined || suspects.length === failures
        circuits.set(key, { suspects, opening: isOpen ? { nextAt: ended + openDuration } : undefined })
        const [oldest] = circuits.keys()
        if (circuits.size > maximumCircuits && oldest !== undefined) circuits.delete(oldest)
        return isOpen && opening === undefined ? "opened" : undefined
      }
    }
  }
}

/** The meaning of an outcome. A field is undefined if the outcome says nothing of it. */
interface Verdict {
  readonly outcome?: (typeof processorOutcomes)[number]
  readonly psp?: Result
  readonly account?: Result
}

const works = { psp: "works", account: "works" } as const

const verdicts: Readonly<Record<Exclude<PspError["_tag"], "PspFailed"> | PspFailed["blame"], Verdict>> = {
  CursorUnknown: { outcome: "cursor_unknown", ...works },
  AccountDisconnected: { outcome: "account_disconnected", ...works },
  RateLimited: { outcome: "rate_limited", ...works },
  // Without credentials there is no call to count.
  PspNotConfigured: works,
  request: { outcome: "refused", ...works },
  account: { outcome: "account_failed", psp: "works", account: "fails" },
  unauthorized: { outcome: "account_failed", psp: "mayFailOnce", account: "fails" },
  unclear: { outcome: "unavailable", psp: "mayFail", account: "fails" },
  psp: { outcome: "unavailable", psp: "fails" }
}

const errorOf = (exit: Exit.Exit<unknown, PspError>) => Option.getOrUndefined(Exit.findErrorOption(exit))

const verdictOf = (exit: Exit.Exit<unknown, PspError>, took: number): Verdict => {
  if (Exit.isSuccess(exit)) return { outcome: "success", ...works }
  if (Cause.hasInterruptsOnly(exit.cause)) {
    return { outcome: "interrupted", ...(took >= hangAfter && { account: "fails" }) }
  }
  const error = errorOf(exit)
  return error === undefined ? {} : verdicts[error._tag === "PspFailed" ? error.blame : error._tag]
}

export class CircuitOpen extends Data.TaggedError("CircuitOpen") {}

/** The annotations of log lines about a failure. */
export const annotations = (error: PspError | undefined) => ({
  cause: error === undefined ? "no answer in time" : "reason" in error ? error.reason : error._tag,
  ...(error !== undefined && "request" in error && error.request !== undefined && { processor_request: error.request })
})

const logLine = (change: "opened" | "closed", name: string, exit: Exit.Exit<unknown, PspError>) =>
  change === "closed"
    ? Effect.logInfo(`Circuit breaker closed: ${name} responds again`)
    : Effect.annotateLogs(
        Effect.logWarning(`Circuit breaker open: ${name} failed ${failures} times in a row`),
        annotations(errorOf(exit))
      )

/** The one key of the circuit of the PSP. */
const all = "all"

/** Circuits, all of them closed, with their metrics in the current registry. */
export const make = Effect.map(Series.current, (series) => {
  const accounts = makeBreaker()
  const psp = makeBreaker()
  const limit = Throttle.limited(50)
  const counters = new Map(
    processorOutcomes.map((outcome) => [outcome, series.counter("practice_data_processor_requests_total", { outcome })])
  )
  const durations = series.histogram("practice_data_processor_request_duration_seconds")
  const outages = series.counter("practice_data_dependency_outages_total", { dependency: "processor" })

  const millisUntilNext = (account: string, time: number) =>
    Math.max(psp.untilNext(all, time), accounts.untilNext(account, time))

  /** Admits a call of an owner. The effect settles it. */
  const admit = (owner: Owner, started: number) => {
    const settlePsp = psp.admit(all, owner, started)
    const settleAccount = accounts.admit(owner.account, owner, started)
    return Effect.fnUntraced(function* (exit: Exit.Exit<unknown, PspError>) {
      const ended = yield* Time.monotonic
      const { outcome, ...verdict } = verdictOf(exit, ended - started)
      if (outcome !== undefined) {
        counters.get(outcome)?.add()
        durations.observe((ended - started) / 1000)
      }
      const ofPsp = settlePsp(verdict.psp, ended)
      if (ofPsp === "opened") outages.add()
      if (ofPsp !== undefined) yield* logLine(ofPsp, "the payment processor", exit)
      const ofAccount = settleAccount(verdict.account, ended)
      if (ofAccount !== undefined) yield* limit(logLine(ofAccount, "the payment processor account of a clinic", exit))
    })
  }

  return {
    isUp: Effect.sync(() => !psp.isOpen(all)),
    /** True if calls for an account are being refused, by its own circuit or that of the PSP. */
    isOpen: (account: string) => psp.isOpen(all) || accounts.isOpen(account),
    untilNext: (account: string) =>
      Effect.map(Time.monotonic, (time) => Duration.millis(millisUntilNext(account, time))),
    /** Makes a call for an account, or fails at once. A call that is interrupted after a while counts as a failure. */
    guard: <A, R>(owner: Owner, call: Effect.Effect<A, PspError, R>) =>
      Effect.flatMap(Time.monotonic, (started): Effect.Effect<A, PspError | CircuitOpen, R> =>
        millisUntilNext(owner.account, started) === 0
          ? Effect.onExit(call, admit(owner, started))
          : Effect.fail(new CircuitOpen())
      ),
    /** Shows the state of the circuits in the metrics until the scope closes. */
    watch: Effect.all(
      [
        series.read("practice_data_processor_circuit_open", psp.openCircuits),
        series.read("practice_data_processor_account_circuits_open", accounts.openCircuits),
        series.read("practice_data_dependency_up", () => 1 - psp.openCircuits(), { dependency: "processor" })
      ],
      { discard: true }
    )
  }
})
