/**
 * Live reads of a clinic's account: the account of the clinic, one retry where the processor asks for it, the deadline,
 * how many reads an organization may have under way, and the circuits that keep what is broken from being called.
 */
import { Clock, Context, Duration, Effect, Layer, Predicate, Random } from "effect"
import {
  ClinicNotConnected,
  ClinicUnknown,
  type CredentialStoreDown,
  CursorNotFound,
  ProcessorBusy,
  ProcessorDown,
  ProcessorNotConfigured,
  type RecordStoreDown,
  type Unauthorized
} from "../api/Errors.ts"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import type { PspKind } from "../api/Psp.ts"
import * as Circuits from "./Circuits.ts"
import { ClinicAccounts } from "./ClinicAccounts.ts"
import * as InFlight from "./InFlight.ts"
import { PspClient } from "./PspClient.ts"
import { type Page, type PageRequest, type PspError, PspUnavailable, type RateLimited } from "./PspPage.ts"

/** How long a read may take: from looking up the clinic to the end of the processor's answer, retry included. */
const deadline = Duration.seconds(8)

/** A processor that asks for more patience than this gets no retry. */
const longestWait = Duration.seconds(2)

/** How many reads an organization may have under way. */
const readsOfAnOrganization = 20

const nothing: Page = { data: [], hasMore: false }

/** What the processor may call an account: no id of it is longer, and a header can carry nothing else. */
const isAccount = (account: string) => /^[\x21-\x7e]{1,255}$/.test(account)

const retryOnce = <E, R>(call: Effect.Effect<Page, E | RateLimited, R>) =>
  Effect.catchIf(
    call,
    (error): error is RateLimited => Predicate.isTagged(error, "RateLimited"),
    (error) =>
      Duration.isGreaterThan(error.retryAfter, longestWait)
        ? Effect.fail(error)
        : Effect.gen(function* () {
            const jitter = yield* Random.nextBetween(0, 250)
            yield* Effect.sleep(Duration.sum(error.retryAfter, Duration.millis(jitter)))
            return yield* call
          })
  )

const messages = {
  RateLimited: "The payment processor asks for patience",
  PspUnavailable: "The payment processor did not answer",
  AccountFailed: "The payment processor did not answer for an account",
  AccountUnauthorized: "The payment processor did not take our key for an account",
  PspRefused: "The payment processor did not take a request"
} as const

type Failure = Extract<PspError, { readonly _tag: keyof typeof messages }>

const hung = new PspUnavailable({ reason: "no answer in time" })

/** Why a read has no answer. */
export type PspReadError =
  | ClinicUnknown
  | ClinicNotConnected
  | CursorNotFound
  | ProcessorDown
  | ProcessorNotConfigured
  | ProcessorBusy
  | Unauthorized
  | CredentialStoreDown
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
    /** Whether the processor is being called: not after it failed several times in a row. */
    readonly isUp: Effect.Effect<boolean>
  }
>()("practice-data/psp/PspReads") {
  static readonly layer = Layer.effect(
    PspReads,
    Effect.gen(function* () {
      const accounts = yield* ClinicAccounts
      const client = yield* PspClient
      const circuits = Circuits.make()
      const inFlight = InFlight.make(readsOfAnOrganization)

      // A circuit that is open has said so, and why.
      const failed = (account: string, failure: Failure) =>
        Effect.gen(function* () {
          const level = (yield* circuits.isOpen(account)) ? "Debug" : "Warn"
          yield* Effect.annotateLogs(Effect.logWithLevel(level)(messages[failure._tag]), Circuits.annotations(failure))
          const untilNext = yield* circuits.untilNext(account)
          return yield* ProcessorDown.retryAfter(Duration.max(untilNext, failure.retryAfter ?? Duration.zero))
        })

      const refused = (account: string) =>
        Effect.flatMap(circuits.untilNext(account), (untilNext) => Effect.fail(ProcessorDown.retryAfter(untilNext)))

      const call = (kind: PspKind, account: string, page: PageRequest, duration: Duration.Duration) =>
        retryOnce(circuits.guard(account)(client.list(kind, account, page))).pipe(
          Effect.timeoutOrElse({ duration, orElse: () => Effect.fail(hung) }),
          Effect.catchTags({
            CursorUnknown: () => Effect.fail(new CursorNotFound()),
            AccountDisconnected: () => Effect.fail(new ClinicNotConnected()),
            PspNotConfigured: () => Effect.fail(new ProcessorNotConfigured()),
            CircuitOpen: () => refused(account),
            RateLimited: (error) => failed(account, error),
            PspUnavailable: (error) => failed(account, error),
            AccountFailed: (error) => failed(account, error),
            AccountUnauthorized: (error) => failed(account, error),
            PspRefused: (error) => failed(account, error)
          })
        )

      const read = Effect.fnUntraced(function* (kind: PspKind, clinic: string, page: PageRequest, until: bigint) {
        const account = yield* accounts.find(clinic)
        if (account === undefined) return yield* new ClinicUnknown()
        // For no account at all, a processor would read its own.
        if (account === null || !isAccount(account)) return yield* new ClinicNotConnected()
        if (Predicate.isNotUndefined(page.createdGte) && page.createdGte > (page.createdLte ?? Infinity)) return nothing
        return yield* call(kind, account, page, Duration.nanos(until - (yield* Clock.monotonicTimeNanos)))
      })

      return PspReads.of({
        isUp: circuits.isUp,
        read: Effect.fn("PspReads.read")(function* (kind, clinic, page) {
          yield* Effect.annotateCurrentSpan({ kind, clinic })
          const until = (yield* Clock.monotonicTimeNanos) + Duration.toNanosUnsafe(deadline)
          const organization = yield* (yield* CurrentOrganization).id
          return yield* read(kind, clinic, page, until).pipe(
            inFlight(organization, () => new ProcessorBusy()),
            Effect.annotateLogs({ organization, clinic, kind })
          )
        })
      })
    })
  )
}
