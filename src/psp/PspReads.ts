/**
 * Live reads of the account of a clinic at the PSP, the payment service provider: one retry if the PSP asks for it, a
 * timeout, a limit of reads in flight for each organization, and circuit breakers.
 */
import { Cache, Context, Duration, Effect, flow, Layer, Option, Random, Record, Schema, Semaphore } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentOrganization } from "../api/Authorization.ts"
import { DataApi } from "../api/DataApi.ts"
import * as Errors from "../api/Errors.ts"
import { maximumLimit, type PspKind, pspGroups } from "../api/Psp.ts"
import { decodeRows } from "../database/Columns.ts"
import { RecordDatabase } from "../database/Database.ts"
import { note } from "../observability/RequestFacts.ts"
import * as Logging from "../observability/Logging.ts"
import * as Circuits from "./Circuits.ts"
import { type PageRequest, PspClient, PspFailed, type RateLimited } from "./PspClient.ts"

interface ClinicAccount {
  readonly organization: string
  readonly clinic: string
  readonly account: string | null
}

const accountRows = decodeRows(Schema.Struct({ processor_account: Schema.NullOr(Schema.String) }))

/** The processor account that is connected to a clinic of the current organization. */
export class ClinicAccounts extends Context.Service<ClinicAccounts>()("practice-data/psp/PspReads/ClinicAccounts", {
  make: Effect.map(RecordDatabase, (sql) => ({
    /** The account of a clinic: null when it has none, undefined when the organization has no such clinic. */
    find: Effect.fn("ClinicAccounts.find")(function* (clinic: string) {
      const id = yield* CurrentOrganization.id
      const [row] = yield* sql.run(
        { key: `organization ${id}`, within: Duration.seconds(2), unavailable: Errors.RecordStoreDown.from },
        accountRows(sql`select processor_account from clinics where organization_id = ${id} and id = ${clinic}`)
      )
      return row?.processor_account
    })
  }))
}) {
  /** The accounts in the table of clinics. */
  static readonly layer = Layer.effect(ClinicAccounts, ClinicAccounts.make)

  /** The fake. */
  static readonly layerMemory = (clinics: ReadonlyArray<ClinicAccount> = []) =>
    Layer.succeed(ClinicAccounts, {
      find: Effect.fnUntraced(function* (clinic) {
        const id = yield* CurrentOrganization.id
        return clinics.find((known) => known.organization === id && known.clinic === clinic)?.account
      })
    })
}

/** From the look-up of the clinic to the end of the response, retry included. */
const timeout = Duration.seconds(8)

/** A read that the PSP delays for longer is not retried. */
const longestRetryDelay = Duration.seconds(2)

const maximumReadsOfAnOrganization = 20

/** Accepts the ids that an HTTP header can carry. */
const isAccount = (account: string) => /^[\x21-\x7e]{1,255}$/.test(account)

export class PspReads extends Context.Service<PspReads>()("practice-data/psp/PspReads", {
  make: Effect.gen(function* () {
    const accounts = yield* ClinicAccounts
    const client = yield* PspClient
    const circuits = yield* Circuits.make
    if (client.isMissing !== true) yield* circuits.watch
    const limitLines = Logging.limited(50)
    const places = yield* Cache.make({
      capacity: 10_000,
      lookup: (_organization: string) => Semaphore.make(maximumReadsOfAnOrganization)
    })

    const down = Effect.fnUntraced(function* (owner: Circuits.Owner, retryAfter = Duration.zero) {
      return yield* Errors.ProcessorDown.retryAfter(Duration.max(yield* circuits.untilNext(owner), retryAfter))
    })

    const refuse = Effect.fnUntraced(function* (owner: Circuits.Owner, failure: PspFailed | RateLimited) {
      // An open circuit breaker has been logged with the reason.
      const log = circuits.isOpen(owner) ? Effect.logDebug : flow(Effect.logWarning, limitLines)
      yield* Effect.annotateLogs(log("A read of the payment processor failed"), Circuits.annotations(failure))
      return yield* down(owner, failure.retryAfter)
    })

    /** Lists a page, once more where the PSP asks to come back shortly. */
    const call = (owner: Circuits.Owner, page: PageRequest, duration: Duration.Duration) => {
      const once = circuits.guard(owner, client.list(owner.kind, owner.account, page))
      const retry = Effect.fnUntraced(function* (error: RateLimited) {
        if (Duration.isGreaterThan(error.retryAfter, longestRetryDelay)) return yield* error
        yield* Effect.sleep(Duration.sum(error.retryAfter, Duration.millis(yield* Random.nextBetween(0, 250))))
        return yield* Effect.annotateSpans(once, "http.request.resend_count", 1)
      })
      return Effect.catchTag(once, "RateLimited", retry).pipe(
        Effect.timeoutOrElse({
          duration,
          orElse: () => Effect.fail(new PspFailed({ blame: "account", reason: "no answer in time" }))
        }),
        Effect.catchTags({
          RateLimited: (failure) => refuse(owner, failure),
          PspFailed: (failure) => refuse(owner, failure),
          CursorUnknown: () => Effect.fail(new Errors.CursorNotFound()),
          AccountDisconnected: () => Effect.fail(new Errors.ClinicNotConnected()),
          CircuitOpen: () => down(owner)
        })
      )
    }

    return {
      /** `down` while the circuit breaker of the PSP is open. */
      state: Effect.map(circuits.isUp, (isUp) => (client.isMissing === true ? "none" : isUp ? "up" : "down")),
      /** Reads a page of a clinic's account, for the current organization. */
      read: Effect.fn("PspReads.read")(function* (kind: PspKind, clinic: string, page: PageRequest) {
        yield* Effect.annotateCurrentSpan({ "practice_data.processor.kind": kind, "practice_data.clinic": clinic })
        const organization = yield* CurrentOrganization.id
        const read = Effect.gen(function* () {
          const [took, account] = yield* Effect.timed(accounts.find(clinic))
          if (account === undefined) return yield* new Errors.ClinicUnknown()
          // Without an account, the PSP would read our own.
          if (account === null || !isAccount(account)) return yield* new Errors.ClinicNotConnected()
          if ((page.createdGte ?? 0) > (page.createdLte ?? Infinity)) return { data: [], hasMore: false }
          if (client.isMissing === true) return yield* new Errors.ProcessorNotConfigured()
          return yield* call({ organization, account, kind }, page, Duration.subtract(timeout, took))
        })
        const inFlight = yield* Cache.get(places, organization)
        const found = yield* inFlight
          .withPermitsIfAvailable(1)(read)
          .pipe(Effect.annotateLogs({ organization, clinic, kind }))
        return Option.isSome(found) ? found.value : yield* new Errors.ProcessorBusy()
      })
    }
  })
}) {
  static readonly layer = Layer.effect(PspReads, PspReads.make)

  /** Over the clinics of a fake, and the fake of a processor; by default none. */
  static readonly layerMemory = (
    clinics: Parameters<typeof ClinicAccounts.layerMemory>[0] = [],
    client: Layer.Layer<PspClient> = PspClient.layerNotConfigured
  ) =>
    // Without `fresh`, all that is built together would share the reads of one client.
    Layer.fresh(PspReads.layer).pipe(Layer.provide([ClinicAccounts.layerMemory(clinics), client]))
}

const kindHandlers = (kind: PspKind) =>
  HttpApiBuilder.group(
    DataApi,
    `psp-${kind}`,
    Effect.fnUntraced(function* (handlers) {
      const { read } = yield* PspReads
      return handlers.handleAll({
        search: Effect.fnUntraced(
          function* ({ payload }) {
            yield* CurrentOrganization.check(payload)
            const { clinic, limit } = payload
            if ((limit ?? maximumLimit) < 1) return yield* new Errors.OutOfRange({ detail: "limit must be at least 1" })
            if (clinic.trim() === "") return yield* new Errors.ClinicRequired()
            const { data, hasMore } = yield* read(kind, clinic, {
              limit: Math.min(limit ?? maximumLimit, maximumLimit),
              startingAfter: payload.starting_after ?? undefined,
              createdGte: payload.created_gte ?? undefined,
              createdLte: payload.created_lte ?? undefined
            })
            return yield* HttpServerResponse.json({ data, has_more: hasMore })
          },
          // Nested more deeply than any object of the processor.
          Effect.catchTag("HttpBodyError", () => Effect.fail(Errors.ProcessorDown.retryAfter(Duration.zero))),
          Effect.tapErrorTag("ProcessorBusy", () => note({ refusal: "load" })),
          Effect.tapErrorTag("ProcessorDown", () => note({ refusal: "processor" }))
        )
      })
    })
  )

/** The endpoints of the live reads. */
export const handlers = Layer.mergeAll(Layer.empty, ...Record.keys(pspGroups).map(kindHandlers))
