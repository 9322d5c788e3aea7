/**
 * Live reads of the account of a clinic at the PSP, the payment service provider: one retry if the PSP asks for it, a
 * timeout, a limit of reads in flight for each organization, and circuit breakers.
 */
import { Clock, Context, Duration, Effect, flow, Layer, Random } from "effect"
import { CurrentOrganization } from "../api/Authorization.ts"
import * as Errors from "../api/Errors.ts"
import type { PspKind } from "../api/Psp.ts"
import * as Throttle from "../observability/Throttle.ts"
import * as Circuits from "./Circuits.ts"
import { ClinicAccounts } from "./ClinicAccounts.ts"
import { PspClient } from "./PspClient.ts"
import { type Page, type PageRequest, PspFailed } from "./PspPage.ts"

/** From the look-up of the clinic to the end of the response, retry included. */
const timeout = Duration.seconds(8)

/** A read that the PSP delays for longer is not retried. */
const longestRetryDelay = Duration.seconds(2)

const maximumReadsOfAnOrganization = 20

/** Accepts the ids that an HTTP header can carry. */
const isAccount = (account: string) => /^[\x21-\x7e]{1,255}$/.test(account)

type PspReadError =
  | Errors.ClinicUnknown
  | Errors.ClinicNotConnected
  | Errors.CursorNotFound
  | Errors.ProcessorDown
  | Errors.ProcessorNotConfigured
  | Errors.ProcessorBusy
  | Errors.Unauthorized
  | Errors.RecordStoreDown

export class PspReads extends Context.Service<
  PspReads,
  {
    /** Reads a page of a clinic's account, for the current organization. */
    readonly read: (
      kind: PspKind,
      clinic: string,
      page: PageRequest
    ) => Effect.Effect<Page, PspReadError, CurrentOrganization>
    /** `down` while the circuit breaker of the PSP is open. */
    readonly state: Effect.Effect<"up" | "down" | "none">
  }
>()("practice-data/psp/PspReads") {
  static readonly layer = Layer.effect(
    PspReads,
    Effect.gen(function* () {
      const accounts = yield* ClinicAccounts
      const client = yield* PspClient
      const circuits = yield* Circuits.make
      if (client.isMissing !== true) yield* circuits.watch
      const limitLines = Throttle.limited(50)
      const inFlight = new Map<string, number>()

      /** Refuses a read of an organization that has too many in flight. Nothing waits. */
      const begin = (organization: string) =>
        Effect.suspend(() => {
          const count = inFlight.get(organization) ?? 0
          return count === maximumReadsOfAnOrganization
            ? Effect.fail(new Errors.ProcessorBusy())
            : Effect.sync(() => inFlight.set(organization, count + 1))
        })

      const end = (organization: string) =>
        Effect.sync(() => {
          const count = (inFlight.get(organization) ?? 0) - 1
          if (count > 0) inFlight.set(organization, count)
          else inFlight.delete(organization)
        })

      const down = (account: string, retryAfter = Duration.zero) =>
        Effect.flatMap(circuits.untilNext(account), (untilNext) =>
          Effect.fail(Errors.ProcessorDown.retryAfter(Duration.max(untilNext, retryAfter)))
        )

      const call = (kind: PspKind, owner: Circuits.Owner, page: PageRequest, duration: Duration.Duration) => {
        const once = circuits.guard(owner, client.list(kind, owner.account, page))
        return once.pipe(
          Effect.catchTag("RateLimited", (error) =>
            Duration.isGreaterThan(error.retryAfter, longestRetryDelay)
              ? Effect.fail(error)
              : Random.nextBetween(0, 250).pipe(
                  Effect.flatMap((jitter) => Effect.sleep(Duration.sum(error.retryAfter, Duration.millis(jitter)))),
                  Effect.andThen(Effect.annotateSpans(once, "http.request.resend_count", 1))
                )
          ),
          Effect.timeoutOrElse({
            duration,
            orElse: () => Effect.fail(new PspFailed({ blame: "account", reason: "no answer in time" }))
          }),
          Effect.catchTag(["RateLimited", "PspFailed"], (failure) => {
            // An open circuit breaker has been logged with the reason.
            const log = circuits.isOpen(owner.account) ? Effect.logDebug : flow(Effect.logWarning, limitLines)
            const logged = Effect.annotateLogs(
              log("A read of the payment processor failed"),
              Circuits.annotations(failure)
            )
            return Effect.andThen(logged, down(owner.account, failure.retryAfter))
          }),
          Effect.catchTags({
            CursorUnknown: () => Effect.fail(new Errors.CursorNotFound()),
            AccountDisconnected: () => Effect.fail(new Errors.ClinicNotConnected()),
            PspNotConfigured: () => Effect.fail(new Errors.ProcessorNotConfigured()),
            CircuitOpen: () => down(owner.account)
          })
        )
      }

      return PspReads.of({
        state: Effect.map(circuits.isUp, (isUp) => (client.isMissing === true ? "none" : isUp ? "up" : "down")),
        read: Effect.fn("PspReads.read")(function* (kind, clinic, page) {
          yield* Effect.annotateCurrentSpan({ "practice_data.processor.kind": kind, "practice_data.clinic": clinic })
          const until = (yield* Clock.monotonicTimeNanos) + Duration.toNanosUnsafe(timeout)
          const organization = yield* CurrentOrganization.id
          const read = Effect.gen(function* () {
            const account = yield* accounts.find(clinic)
            if (account === undefined) return yield* new Errors.ClinicUnknown()
            // Without an account, the PSP would read our own.
            if (account === null || !isAccount(account)) return yield* new Errors.ClinicNotConnected()
            if ((page.createdGte ?? 0) > (page.createdLte ?? Infinity)) return { data: [], hasMore: false }
            const duration = Duration.nanos(until - (yield* Clock.monotonicTimeNanos))
            return yield* call(kind, { organization, account }, page, duration)
          })
          return yield* Effect.acquireUseRelease(
            begin(organization),
            () => read,
            () => end(organization)
          ).pipe(Effect.annotateLogs({ organization, clinic, kind }))
        })
      })
    })
  )
}
