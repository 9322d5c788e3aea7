/**
 * The circuit breakers of the PSP: one for each account, for failures that the account can cause, one for each kind of its
 * objects, for permissions that our key lacks, and one for the PSP.
 *
 * After several failures in a row a circuit opens and refuses calls for a while. Then it lets probes through, and the
 * first that succeeds closes it. `effect/persistence` has circuits that do less: their number has no limit, a probe that
 * hangs keeps its circuit open, and a call that hangs until it is interrupted never counts as a failure.
 */
import { Cause, Data, Duration, Effect, Exit, Option } from "effect"
import * as Time from "../observability/Time.ts"
import * as Logging from "../observability/Logging.ts"
import * as Metrics from "../observability/Metrics.ts"
import type { PspKind } from "../api/Psp.ts"
import type { PspError, PspFailed } from "./PspClient.ts"

const failures = 5

/** The most failures of one organization, whose account may be to blame, among those that open the circuit of the PSP. */
const mostOfOrganization = 3

/** Past this number, the circuit that failed longest ago is forgotten. */
const maximumCircuits = 10_000

// Milliseconds.
const openDuration = 5000
const probeInterval = 1000
/** A call that is interrupted sooner says nothing; a call that is interrupted later had hung. */
const hangAfter = 250
/** The PSP may hang for all accounts. No page takes so long, and each read without an answer is interrupted after 8 seconds. */
const silentAfter = 5000

/** The owner of the objects that a call reads, and their kind. */
export interface Owner {
  readonly organization: string
  readonly account: string
  readonly kind: PspKind
}

/** A circuit with failures. One without is not kept. */
interface Circuit {
  /** The owners of the last failures in a row. */
  readonly suspects: ReadonlyArray<Owner>
  /** Undefined while the circuit is closed. */
  readonly opening: { nextAt: number } | undefined
}

/** The result of a call for a circuit. `mayFail`: its account may be to blame; `mayFailOnce`: and counts once. */
type Result = "works" | "fails" | "mayFail" | "mayFailOnce" | undefined

/** Circuits by key, all of them closed. Times are milliseconds of any one clock. */
export const makeBreaker = () => {
  const circuits = new Map<string, Circuit>()
  const openCircuit = (key: string) => circuits.get(key)?.opening
  return {
    isOpen: (key: string) => openCircuit(key) !== undefined,
    /** Milliseconds until a call of a key may be made; 0 when it may be made now. */
    untilNext: (key: string, now: number) => Math.max(0, (openCircuit(key)?.nextAt ?? now) - now),
    /**
     * Admits a call of an owner, which `untilNext` has to allow. The result settles it, and tells how that changed the
     * circuit. It counts only while the circuit is as it was when the call was admitted.
     */
    admit: (key: string, owner: Owner, now: number) => {
      const opening = openCircuit(key)
      if (opening !== undefined) opening.nextAt = now + probeInterval
      return (result: Result, ended: number): "opened" | "closed" | undefined => {
        if (result === undefined || openCircuit(key) !== opening) return undefined
        const before = circuits.get(key)?.suspects ?? []
        const ofOrganization = before.filter(({ organization }) => organization === owner.organization)
        if (result === "mayFailOnce" && before.some(({ account }) => account === owner.account)) return undefined
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

/** The one key of the circuit of the PSP. */
const pspKey = "psp"

/** The outcome of a call, and its results for the circuits of the PSP, of the account, and of the kind. */
type Verdict = readonly [
  outcome: (typeof Metrics.processorOutcomes)[number] | undefined,
  ...results: ReadonlyArray<Result>
]

const verdicts: Readonly<Record<Exclude<PspError["_tag"], "PspFailed"> | PspFailed["blame"], Verdict>> = {
  CursorUnknown: ["cursor_unknown", "works", "works"],
  AccountDisconnected: ["account_disconnected", "works", "works"],
  RateLimited: ["rate_limited", "works", "works"],
  request: ["refused", "works", "works"],
  account: ["account_failed", "works", "fails"],
  permission: ["account_failed", "works", "works", "fails"],
  unauthorized: ["account_failed", "mayFailOnce", "fails"],
  unclear: ["unavailable", "mayFail", "fails"],
  psp: ["unavailable", "fails"]
}

const judge = (exit: Exit.Exit<unknown, PspError>, took: number): Verdict => {
  if (Exit.isSuccess(exit)) return ["success", "works", "works", "works"]
  if (Cause.hasInterruptsOnly(exit.cause)) {
    return ["interrupted", took < silentAfter ? undefined : "mayFailOnce", took < hangAfter ? undefined : "fails"]
  }
  const error = Option.getOrUndefined(Exit.findErrorOption(exit))
  return error === undefined ? [undefined] : verdicts[error._tag === "PspFailed" ? error.blame : error._tag]
}

export class CircuitOpen extends Data.TaggedError("CircuitOpen") {}

/** The annotations of log lines about a failure. */
export const annotations = (error: PspError | undefined) => ({
  cause: error === undefined ? "no answer in time" : "reason" in error ? error.reason : error._tag,
  ...(error !== undefined && "request" in error && error.request !== undefined && { processor_request: error.request })
})

/** Circuits, all of them closed, with their metrics in the current registry. */
export const make = Effect.map(Metrics.series, (series) => {
  const accounts = makeBreaker()
  const psp = makeBreaker()
  const limit = Logging.limited(50)
  const counters = new Map(
    Metrics.processorOutcomes.map((outcome) => [
      outcome,
      series.counter("practice_data_processor_requests_total", { outcome })
    ])
  )
  const durations = series.histogram("practice_data_processor_request_duration_seconds")

  /** The circuits of a call, in the order of a verdict. */
  const guarding = ({ account, kind }: Owner) => [
    { breaker: psp, key: pspKey, name: "the payment processor" },
    { breaker: accounts, key: account, name: "the payment processor account of a clinic" },
    { breaker: accounts, key: `${account} ${kind}`, name: `the payment processor for ${kind} of a clinic` }
  ]

  const millisUntilNext = (owner: Owner, time: number) =>
    Math.max(...guarding(owner).map(({ breaker, key }) => breaker.untilNext(key, time)))

  return {
    isUp: Effect.sync(() => !psp.isOpen(pspKey)),
    /** True if calls for a kind of objects of an account are being refused, by any of the circuits. */
    isOpen: (owner: Owner) => guarding(owner).some(({ breaker, key }) => breaker.isOpen(key)),
    untilNext: (owner: Owner) => Effect.map(Time.monotonic, (time) => Duration.millis(millisUntilNext(owner, time))),
    /** Makes a call for an account, or fails at once. A call that is interrupted after a while counts as a failure. */
    guard: <A, R>(owner: Owner, call: Effect.Effect<A, PspError, R>) =>
      Effect.gen(function* () {
        const started = yield* Time.monotonic
        if (millisUntilNext(owner, started) > 0) return yield* new CircuitOpen()
        const admitted = guarding(owner).map(({ breaker, key, name }) => ({
          breaker,
          name,
          settle: breaker.admit(key, owner, started)
        }))
        const settleAll = Effect.fnUntraced(function* (exit: Exit.Exit<A, PspError>) {
          const ended = yield* Time.monotonic
          const [outcome, ...results] = judge(exit, ended - started)
          if (outcome !== undefined) {
            counters.get(outcome)?.add()
            durations.observe((ended - started) / 1000)
          }
          const failure = annotations(Option.getOrUndefined(Exit.findErrorOption(exit)))
          for (const [index, { breaker, name, settle }] of admitted.entries()) {
            const change = settle(results[index], ended)
            if (change === undefined) continue
            const line =
              change === "closed"
                ? Effect.logInfo(`Circuit breaker closed: ${name} responds again`)
                : Effect.annotateLogs(
                    Effect.logWarning(`Circuit breaker open: ${name} failed ${failures} times in a row`),
                    failure
                  )
            yield* breaker === psp ? line : limit(line)
          }
        })
        return yield* Effect.onExit(call, settleAll)
      }),
    /** Shows the state of the PSP's circuit in the metrics until the scope closes. */
    watch: series.read("practice_data_dependency_up", () => Number(!psp.isOpen(pspKey)), { dependency: "processor" })
  }
})
