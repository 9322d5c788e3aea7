/** What is measured of the PSP: the calls of it, and its circuit breakers. */
import { Cause, Effect, Exit, Option, type Scope } from "effect"
import { processorOutcomes } from "../observability/Metrics.ts"
import * as Series from "../observability/Series.ts"
import type { PspError } from "./PspPage.ts"

type Outcome = (typeof processorOutcomes)[number]

const outcomes = {
  CursorUnknown: "cursor_unknown",
  AccountDisconnected: "account_disconnected",
  RateLimited: "rate_limited",
  PspUnavailable: "unavailable",
  PspErred: "unavailable",
  AccountFailed: "account_failed",
  AccountUnauthorized: "account_unauthorized",
  PspRefused: "refused",
  // Without credentials there is no call.
  PspNotConfigured: undefined
} as const satisfies Readonly<Record<PspError["_tag"], Outcome | undefined>>

const outcomeOf = (exit: Exit.Exit<unknown, PspError>): Outcome | undefined => {
  if (Exit.isSuccess(exit)) return "success"
  if (Cause.hasInterruptsOnly(exit.cause)) return "interrupted"
  // A bug of ours or of the client has no outcome.
  const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
  return error === undefined ? undefined : outcomes[error._tag]
}

/** The state of the circuit breakers. */
export interface Circuits {
  /** Whether that of the PSP is open. */
  readonly isOpen: () => boolean
  /** How many of accounts are. */
  readonly openAccounts: () => number
}

export interface PspMetrics {
  /** Counts a call that ended, and that took so many milliseconds. */
  readonly ended: (exit: Exit.Exit<unknown, PspError>, took: number) => void
  /** Counts an outage of the PSP. */
  readonly outageBegan: () => void
  /** Shows the state of the circuit breakers. */
  readonly watch: (circuits: Circuits) => Effect.Effect<void, never, Scope.Scope>
}

const bit = (isSet: boolean) => (isSet ? 1 : 0)

/** The metrics of the PSP in the current registry. */
export const make: Effect.Effect<PspMetrics> = Effect.map(Series.current, (series) => {
  const counted = (outcome: Outcome) => series.counter("practice_data_processor_requests_total", { outcome })
  const counters = new Map(processorOutcomes.map((outcome) => [outcome, counted(outcome)]))
  const durations = series.histogram("practice_data_processor_request_duration_seconds")
  const outages = series.counter("practice_data_dependency_outages_total", { dependency: "processor" })
  return {
    ended: (exit, took) => {
      const outcome = outcomeOf(exit)
      if (outcome === undefined) return
      counters.get(outcome)?.add()
      durations.observe(took / 1000)
    },
    outageBegan: () => outages.add(),
    watch: ({ isOpen, openAccounts }) =>
      Effect.all(
        [
          series.read("practice_data_processor_circuit_open", () => bit(isOpen())),
          series.read("practice_data_processor_account_circuits_open", openAccounts),
          series.read("practice_data_dependency_up", () => bit(!isOpen()), { dependency: "processor" })
        ],
        { discard: true }
      )
  }
})
