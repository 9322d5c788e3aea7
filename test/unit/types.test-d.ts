/** Code that does not compile, beside code that does: the type checker reports an expected error that is not there. */
// The compiler reports these errors, where they can be expected, and Effect's plugin once more, where they cannot.
// @effect-diagnostics missingEffectError:off missingEffectContext:off
import { Effect, Schema } from "effect"
import { type HttpApi, HttpApiBuilder, HttpApiClient, HttpApiEndpoint, type HttpApiGroup } from "effect/http-api"
import { expectTypeOf } from "vitest"
import { DataApi } from "../../src/api/DataApi.ts"
import {
  error,
  OutOfRange,
  RecordNotFound,
  RecordStoreDown,
  responses,
  responseWithHeader,
  Unauthorized
} from "../../src/api/Errors.ts"
import { VersionOneApi } from "../../src/api/IntakeApi.ts"
import { CurrentOrganization } from "../../src/api/Authorization.ts"
import { DeletionTask } from "../../src/api/DeletionTasks.ts"
import { PspPage } from "../../src/api/Psp.ts"
import { Changes } from "../../src/api/records/index.ts"
import * as PracticeData from "../../src/client/PracticeData.ts"
import { charges } from "../../src/api/records/Charges.ts"
import { pets } from "../../src/api/records/Pets.ts"
import { makeHandlers } from "../../src/records/Handlers.ts"
import { Repositories } from "../../src/records/Repository.ts"

const searchFailingWith =
  <E>(failure: E) =>
  () =>
    Effect.fail(failure)

export const declaredErrors = HttpApiBuilder.group(DataApi, "charges", (handlers) =>
  handlers
    .handle("search", searchFailingWith(new OutOfRange({ detail: "limit must be between 1 and 1000" })))
    // Errors of the middleware are declared as well.
    .handle("get", searchFailingWith(new Unauthorized()))
)

export const errorOfAnotherEndpoint = HttpApiBuilder.group(DataApi, "charges", (handlers) =>
  handlers
    // @ts-expect-error A search finds nothing rather than failing.
    .handle("search", searchFailingWith(new RecordNotFound()))
    // @ts-expect-error No endpoint declares this error.
    .handle("get", searchFailingWith(new Error("undeclared")))
)

class Statusless extends Schema.TaggedError<Statusless>()("Statusless", { detail: Schema.String }) {}
class Conflict extends error<Conflict>()("Conflict", 409, { detail: Schema.String }) {}

export const errorsWithTheirStatus = [responses(Conflict), responseWithHeader(Conflict, "allow", "GET")]

// @ts-expect-error An error has a status.
export const errorWithoutStatus = responses(Conflict, Statusless)

type Errors<Api> =
  Api extends HttpApi.HttpApi<infer _Id, infer Groups> ? HttpApiEndpoint.Errors<HttpApiGroup.Endpoints<Groups>> : never

/** Every error of every API, also one that an endpoint or a middleware lists without `responses`. */
export const statusOf = (failure: Errors<typeof DataApi> | Errors<typeof VersionOneApi>): number =>
  failure.httpApiStatus

const listing = HttpApiEndpoint.get("listing", "/", { error: [...responses(Conflict), Statusless] })

// @ts-expect-error One of its errors has no status.
export const statusOfListed = (failure: HttpApiEndpoint.Errors<typeof listing>): number => failure.httpApiStatus

export const unhandledEndpoint = HttpApiBuilder.group(
  DataApi,
  "charges",
  // @ts-expect-error The endpoint `get` is not handled.
  (handlers) => handlers.handle("search", searchFailingWith(new RecordStoreDown()))
)

export const repositoryOfAnotherGroup = HttpApiBuilder.group(DataApi, "charges", (handlers) =>
  // @ts-expect-error Pets are no charges.
  Effect.map(Repositories, ({ of }) => handlers.handleAll(makeHandlers(of(pets))))
)

const page = { limit: 1, offset: 0 }

const read = Effect.flatMap(Repositories, ({ of }) => of(charges).search({ status: "open" }, page)).pipe(
  Effect.provide(Repositories.layerMemory())
)

export const readOfAnOrganization = () =>
  Effect.runPromise(
    read.pipe(Effect.provideService(CurrentOrganization, CurrentOrganization.of({ id: "org_oakridge" })))
  )

// @ts-expect-error Whose records?
export const readOfNobody = () => Effect.runPromise(read)

export const unknownFilter = Effect.map(Repositories, ({ of }) =>
  // @ts-expect-error Charges have no such filter.
  of(charges).search({ home_clinic: "clinic_1" }, page)
)

const part = { organization_id: "org_oakridge", id: "charge_1" }

// @ts-expect-error A fake takes whole records.
export const partsOfRecords = Repositories.layerMemory({ charges: [part] })

export const requiredId = Effect.gen(function* () {
  const client = yield* HttpApiClient.make(DataApi)
  yield* client.charges.get({ payload: { id: "charge_1" } })
  // @ts-expect-error The id of a record is required.
  yield* client.charges.get({ payload: {} })
  // @ts-expect-error The id of a record is never null.
  yield* client.charges.get({ payload: { id: null } })
  // @ts-expect-error The clinic of a processor read is never null.
  yield* client["psp-charges"].search({ payload: { clinic: null } })
})

const client = PracticeData.make({ baseUrl: "http://service.test", apiKey: "key" })

const calls = {
  search: () => client.charges.search({ status: "open", limit: 1, created_at_since: "2026-01-01" }),
  all: () => client.pets.all({ updated_at_since: "2026-01-01" }),
  get: () => client.charges.get("charge_1", { signal: AbortSignal.abort() }),
  changes: () => client.changes({ cursor: "cursor", resources: ["charges"] }),
  live: () => client.pspBalanceTransactions.search({ clinic: "clinic_1" }),
  task: () => client.invoiceDeletions.get({ idempotency_key: "delivery-1" })
}

type Encoded = typeof charges.record.Encoded

expectTypeOf(calls.search).returns.resolves.toEqualTypeOf<ReadonlyArray<Encoded>>()
expectTypeOf(calls.all).returns.toEqualTypeOf<AsyncIterable<typeof pets.record.Encoded>>()
expectTypeOf(calls.get).returns.resolves.toEqualTypeOf<Encoded>()
expectTypeOf(calls.changes).returns.toEqualTypeOf<AsyncIterable<typeof Changes.Encoded>>()
expectTypeOf(calls.live).returns.resolves.toEqualTypeOf<typeof PspPage.Type>()
expectTypeOf(calls.task).returns.resolves.toEqualTypeOf<typeof DeletionTask.Encoded>()
expectTypeOf<Encoded["invoice_pims_id"]>().toEqualTypeOf<number | null>()
expectTypeOf<Encoded["created_at"]>().toEqualTypeOf<string>()
