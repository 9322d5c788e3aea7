/**
 * Live reads of the account of a clinic at the PSP, the payment service provider: one retry where the PSP asks for it, a
 * timeout, a limit of reads in flight for each organization, and circuit breakers.
 */
import { Clock, Context, Duration, Effect, Layer, Predicate, Random } from "effect"
import {
  ClinicNotConnected,
  ClinicUnknown,
  CursorNotFound,
  ProcessorBusy,
  ProcessorDown,
  ProcessorNotConfigured,
  type RecordStoreDown,
  type Unauthorized
} from "../api/Errors.ts"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import type { PspKind } from "../api/Psp.ts"
import * as Throttle from "../database/Throttle.ts"
import * as Circuits from "./Circuits.ts"
import { ClinicAccounts } from "./ClinicAccounts.ts"
import * as InFlight from "./InFlight.ts"
import { PspClient } from "./PspClient.ts"
import * as PspMetrics from "./PspMetrics.ts"
import { type Page, type PageRequest, type PspError, PspUnavailable, type RateLimited } from "./PspPage.ts"

/** From looking up the clinic to the end of the response, retry included. */
const timeout = Duration.seconds(8)

/** A read that the PSP asks to delay for longer is not retried. */
const longestRetryDelay = Duration.seconds(2)

const maximumReadsOfAnOrganization = 20

const nothing: Page = { data: [], hasMore: false }

/** Whether text can be the id of an account: no id is longer, and a header can carry nothing else. */
const isAccount = (account: string) => /^[\x21-\x7e]{1,255}$/.test(account)

const retryOnce = <E extends { readonly _tag: string }>(call: Effect.Effect<Page, E | RateLimited>) =>
  Effect.catchIf(
    call,
    (error): error is RateLimited => error._tag === "RateLimited",
    (error) =>
      Duration.isGreaterThan(error.retryAfter, longestRetryDelay)
        ? Effect.fail(error)
        : Random.nextBetween(0, 250).pipe(
            Effect.flatMap((jitter) => Effect.sleep(Duration.sum(error.retryAfter, Duration.millis(jitter)))),
            Effect.andThen(Effect.annotateSpans(call, "http.request.resend_count", 1))
          )
  )

const messages = {
  RateLimited: "The payment processor asks for fewer requests",
  PspUnavailable: "The payment processor did not answer",
  PspErred: "The payment processor failed for an account",
  AccountFailed: "The payment processor did not answer for an account",
  AccountUnauthorized: "The payment processor refused our key for an account",
  PspRefused: "The payment processor refused a request"
} as const

type Failure = Extract<PspError, { readonly _tag: keyof typeof messages }>

const isFailure = (error: { readonly _tag: string }): error is Failure => error._tag in messages

const timedOut = new PspUnavailable({ reason: "no answer in time" })

/** Why a read fails. */
export type PspReadError =
  | ClinicUnknown
  | ClinicNotConnected
  | CursorNotFound
  | ProcessorDown
  | ProcessorNotConfigured
  | ProcessorBusy
  | Unauthorized
  | RecordStoreDown

export class PspReads extends Context.Service<
  PspReads,
  {
    /** A page of a clinic's account, for the current organization. */
    readonly read: (
      kind: PspKind,
      clinic: string,
      page: PageRequest
    ) => Effect.Effect<Page, PspReadError, CurrentOrganization>
    /** Whether the circuit breaker of the PSP is closed. */
    readonly isUp: Effect.Effect<boolean>
  }
>()("practice-data/psp/PspReads") {
  static readonly layer = Layer.effect(
    PspReads,
    Effect.gen(function* () {
      const accounts = yield* ClinicAccounts
      const client = yield* PspClient
      const metrics = yield* PspMetrics.make
      const circuits = Circuits.make(metrics)
      if (client.isMissing !== true) yield* metrics.watch(circuits.state)
      const limit = Throttle.limited(50)
      const inFlight = InFlight.make(maximumReadsOfAnOrganization)

      // A circuit breaker that is open has been logged with the reason.
      const log = (account: string, failure: Failure) =>
        Effect.flatMap(circuits.isOpen(account), (isOpen) =>
          Effect.annotateLogs(
            isOpen ? Effect.logDebug(messages[failure._tag]) : limit(Effect.logWarning(messages[failure._tag])),
            Circuits.annotations(failure)
          )
        )

      const down = (account: string, retryAfter = Duration.zero) =>
        Effect.flatMap(circuits.untilNext(account), (untilNext) =>
          Effect.fail(ProcessorDown.retryAfter(Duration.max(untilNext, retryAfter)))
        )

      const call = (kind: PspKind, owner: Circuits.Owner, page: PageRequest, duration: Duration.Duration) =>
        retryOnce(circuits.guard(owner)(client.list(kind, owner.account, page))).pipe(
          Effect.timeoutOrElse({ duration, orElse: () => Effect.fail(timedOut) }),
          Effect.catchIf(isFailure, (failure) =>
            Effect.andThen(log(owner.account, failure), down(owner.account, failure.retryAfter))
          ),
          Effect.catchTags({
            CursorUnknown: () => Effect.fail(new CursorNotFound()),
            AccountDisconnected: () => Effect.fail(new ClinicNotConnected()),
            PspNotConfigured: () => Effect.fail(new ProcessorNotConfigured()),
            CircuitOpen: () => down(owner.account)
          })
        )

      const read = Effect.fnUntraced(function* (kind: PspKind, clinic: string, page: PageRequest, until: bigint) {
        const account = yield* accounts.find(clinic)
        if (account === undefined) return yield* new ClinicUnknown()
        // Without an account, the PSP would read our own.
        if (account === null || !isAccount(account)) return yield* new ClinicNotConnected()
        if (Predicate.isNotUndefined(page.createdGte) && page.createdGte > (page.createdLte ?? Infinity)) return nothing
        const organization = yield* CurrentOrganization.id
        return yield* call(
          kind,
          { organization, account },
          page,
          Duration.nanos(until - (yield* Clock.monotonicTimeNanos))
        )
      })

      return PspReads.of({
        isUp: circuits.isUp,
        read: Effect.fn("PspReads.read")(function* (kind, clinic, page) {
          yield* Effect.annotateCurrentSpan({ "practice_data.processor.kind": kind, "practice_data.clinic": clinic })
          const until = (yield* Clock.monotonicTimeNanos) + Duration.toNanosUnsafe(timeout)
          const organization = yield* CurrentOrganization.id
          return yield* read(kind, clinic, page, until).pipe(
            inFlight(organization, () => new ProcessorBusy()),
            Effect.annotateLogs({ organization, clinic, kind })
          )
        })
      })
    })
  )
}
