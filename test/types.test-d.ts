/**
 * What does not compile, each beside what does. The type checker runs over this file, and an error that it expects here
 * and does not find is an error of its own.
 */
// The compiler reports these errors, where they can be expected, and Effect's plugin once more, where they cannot.
// @effect-diagnostics missingEffectError:off missingEffectContext:off
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { DataApi } from "../src/api/DataApi.ts"
import { OutOfRange, RecordNotFound, RecordStoreDown, Unauthorized } from "../src/api/Errors.ts"
import { CurrentOrganization } from "../src/api/CurrentOrganization.ts"
import { Charges } from "../src/api/records/Charges.ts"

const searchFailingWith =
  <E>(error: E) =>
  () =>
    Effect.fail(error)

export const declaredErrors = HttpApiBuilder.group(DataApi, "charges", (handlers) =>
  handlers
    .handle("search", searchFailingWith(new OutOfRange({ detail: "limit must be between 1 and 1000" })))
    .handle("get", searchFailingWith(new RecordNotFound()))
)

export const errorsOfTheMiddleware = HttpApiBuilder.group(DataApi, "charges", (handlers) =>
  handlers
    .handle("search", searchFailingWith(new Unauthorized()))
    .handle("get", searchFailingWith(new RecordStoreDown()))
)

export const errorOfAnotherEndpoint = HttpApiBuilder.group(DataApi, "charges", (handlers) =>
  handlers
    // @ts-expect-error A search finds nothing rather than failing.
    .handle("search", searchFailingWith(new RecordNotFound()))
    .handle("get", searchFailingWith(new RecordNotFound()))
)

export const undeclaredError = HttpApiBuilder.group(DataApi, "charges", (handlers) =>
  handlers
    .handle("search", searchFailingWith(new RecordStoreDown()))
    // @ts-expect-error No endpoint declares this error.
    .handle("get", searchFailingWith(new Error("undeclared")))
)

export const unhandledEndpoint = HttpApiBuilder.group(
  DataApi,
  "charges",
  // @ts-expect-error The endpoint `get` is not handled.
  (handlers) => handlers.handle("search", searchFailingWith(new RecordStoreDown()))
)

const read = Effect.flatMap(Charges, (charges) => charges.search({}, { limit: 1, offset: 0 })).pipe(
  Effect.provide(Charges.layerMemory([]))
)

export const readOfAnOrganization = () =>
  Effect.runPromise(read.pipe(Effect.provideService(CurrentOrganization, CurrentOrganization.known("org_oakridge"))))

// @ts-expect-error Whose records?
export const readOfNobody = () => Effect.runPromise(read)

// @ts-expect-error A fake takes records of its kind.
export const wrongRecords = Charges.layerMemory([{ organization_id: "org_oakridge", id: "charge_1" }])
