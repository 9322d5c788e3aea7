/**
 * Live reads of a clinic's account: the account of the clinic, one retry where the processor asks for it, the deadline,
 * and the circuit breaker.
 */
import { Context, Duration, Effect, Layer, Predicate, Random } from "effect"
import { BadRequest, Unavailable, type Unauthorized } from "../Errors.ts"
import type { CurrentOrganization } from "../Organization/CurrentOrganization.ts"
import * as CircuitBreaker from "./CircuitBreaker.ts"
import { ClinicAccounts } from "./ClinicAccounts.ts"
import { PspClient } from "./PspClient.ts"
import { type Kind, type Page, type PageRequest, type PspError, PspUnavailable, type RateLimited } from "./PspPage.ts"

/** How long the processor may take, retry included. */
const deadline = Duration.seconds(8)

/** A processor that asks for more patience than this gets no retry. */
const longestWait = Duration.seconds(2)

const nothing: Page = { data: [], hasMore: false }

const isOutage = (error: PspError) => error._tag === "PspUnavailable"

const retryOnce = (call: Effect.Effect<Page, PspError>) =>
  Effect.catchTag(call, "RateLimited", (error: RateLimited) =>
    Duration.isGreaterThan(error.retryAfter, longestWait)
      ? Effect.fail(error)
      : Effect.gen(function* () {
          const jitter = yield* Random.nextBetween(0, 250)
          yield* Effect.sleep(Duration.sum(error.retryAfter, Duration.millis(jitter)))
          return yield* call
        })
  )

const unavailable = (message: string, reason: string) =>
  Effect.andThen(Effect.logWarning(message, reason), Effect.fail(Unavailable.processor))

export class PspReads extends Context.Service<
  PspReads,
  {
    /** A page of a clinic's account, for the current organization. */
    readonly read: (
      kind: Kind,
      clinic: string,
      page: PageRequest
    ) => Effect.Effect<Page, BadRequest | Unauthorized | Unavailable, CurrentOrganization>
    /** Whether the processor is being called: not after it failed several times in a row. */
    readonly isUp: Effect.Effect<boolean>
  }
>()("practice-data/Psp/PspReads") {
  static readonly layer = Layer.effect(
    PspReads,
    Effect.gen(function* () {
      const accounts = yield* ClinicAccounts
      const client = yield* PspClient
      const breaker = yield* CircuitBreaker.make({ failures: 5, pause: Duration.seconds(5) })
      const protect = breaker.protect(isOutage, () => new PspUnavailable({ reason: "circuit open" }))
      return PspReads.of({
        isUp: breaker.isClosed,
        read: Effect.fn("PspReads.read")(function* (kind, clinic, page) {
          yield* Effect.annotateCurrentSpan({ kind, clinic })
          const account = yield* accounts.find(clinic)
          if (account === undefined) return yield* BadRequest.unknownClinic
          // For no account at all, a processor would read its own.
          if (account === null || account.trim() === "") return yield* BadRequest.noAccount
          if (Predicate.isNotUndefined(page.createdGte) && page.createdGte > (page.createdLte ?? Infinity))
            return nothing
          return yield* retryOnce(client.list(kind, account, page)).pipe(
            Effect.timeoutOrElse({
              duration: deadline,
              orElse: () => Effect.fail(new PspUnavailable({ reason: "no answer in time" }))
            }),
            protect,
            Effect.catchTags({
              CursorUnknown: () => Effect.fail(BadRequest.unknownCursor),
              AccountDisconnected: () => Effect.fail(BadRequest.noAccount),
              PspNotConfigured: () => Effect.fail(Unavailable.processorNotConfigured),
              RateLimited: () => unavailable("The payment processor asks for patience", "rate limit"),
              PspUnavailable: ({ reason }) => unavailable("The payment processor did not answer", reason),
              PspRefused: ({ reason }) => unavailable("The payment processor did not take a request", reason)
            }),
            Effect.annotateLogs({ kind, clinic })
          )
        })
      })
    })
  )
}
