/** Live reads of a clinic's connected payment processor account. All six have the same request and response. */
import { Effect, Predicate, Schema, SchemaGetter } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import * as Errors from "./Errors.ts"
import { annotations, typeName } from "./openapi/Document.ts"
import * as Filter from "./records/Filter.ts"
import { integer, organization } from "./records/Requests.ts"
import { faults, refuse } from "./Faults.ts"

/** The largest page of the processor. */
export const maximumLimit = 100

const latest = Number.MAX_SAFE_INTEGER

const isNotEarly = Schema.makeFilter((value: number) => value >= 0, {
  fault: { type: "greater_than_equal", msg: "Input should be greater than or equal to 0" }
})

const isNotLate = Schema.makeFilter((value: number) => value <= latest, {
  fault: { type: "less_than_equal", msg: `Input should be less than or equal to ${latest}` }
})

const epochSeconds = (description: string) =>
  Filter.optional(integer(description, { minimum: 0, maximum: latest }).check(isNotEarly, isNotLate))

// Null counts as absent.
const clinic = Schema.NullOr(Filter.Text("The clinic whose connected account to read.", "clinic_oakridge_01")).pipe(
  Schema.decodeTo(Schema.String, {
    decode: SchemaGetter.transformEffect((name) =>
      name === null ? Effect.fail(refuse(faults.missing)) : Effect.succeed(name)
    ),
    encode: SchemaGetter.passthroughSupertype()
  })
)

const pspSearchRequest = Schema.Struct({
  clinic,
  organization,
  limit: Filter.optional(
    integer("Maximum number of objects to return. Values over 100 are capped at 100.", { minimum: 1, default: 100 })
  ),
  starting_after: Filter.optional(Filter.Text("The id of the last object of the previous page.")),
  created_gte: epochSeconds("Created at or after this Unix time, in seconds."),
  created_lte: epochSeconds("Created at or before this Unix time, in seconds.")
})

/** An object of the processor, with any other fields. */
export interface PspObject {
  readonly id: string
  readonly object: string
  /** Seconds since 1970. */
  readonly created: number
  readonly [field: string]: Schema.Json
}

const isPspObject = (u: unknown): u is PspObject =>
  Predicate.isObject(u) &&
  Predicate.isString(u["id"]) &&
  Predicate.isString(u["object"]) &&
  Predicate.isNumber(u["created"])

// Declared, so that the fields keep the processor's order.
const PspObject = Schema.declare(isPspObject, { toCodecJson: () => undefined }).check(
  Schema.makeFilter(() => undefined, {
    identifier: "PspObject",
    toJsonSchema: () => ({
      type: "object",
      description: "An object of the payment processor, with all the fields that the processor returns.",
      properties: {
        id: { type: "string", description: "Identifier at the processor.", examples: ["txn_oakridge_0001"] },
        object: { type: "string", description: "The type of the object.", examples: ["balance_transaction"] },
        created: {
          type: "integer",
          format: "int64",
          description: "Time of creation, as Unix time in seconds.",
          examples: [1767600000]
        }
      },
      required: ["id", "object", "created"],
      additionalProperties: true,
      "x-provisional": true
    })
  })
)

export const PspPage = Schema.Struct({
  data: Schema.Array(PspObject).annotate({ description: "The processor's objects, unchanged, newest first." }),
  has_more: Schema.Boolean.annotate({ description: "True if there is another page." })
}).annotate({ identifier: "PspPage", description: "A page of objects of the payment processor." })

const title = (kind: string) => kind.replaceAll("-", " ")

const errors = Errors.responses(
  Errors.OrgMismatch,
  Errors.OutOfRange,
  Errors.ClinicRequired,
  Errors.ClinicUnknown,
  Errors.ClinicNotConnected,
  Errors.CursorNotFound,
  Errors.RecordStoreDown,
  Errors.ProcessorDown,
  Errors.ProcessorNotConfigured,
  Errors.ProcessorBusy
)

const group = <const Kind extends string>(kind: Kind, prefix: string, object: string) =>
  HttpApiGroup.make(`psp-${kind}` as const)
    .annotateMerge(
      OpenApi.annotations({ description: `Live reads of the ${title(kind)} of a clinic's payment processor account.` })
    )
    .add(
      HttpApiEndpoint.post("search", `/psp-${kind}/search`, {
        payload: pspSearchRequest.annotate({ identifier: `${typeName(`psp-${kind}`)}SearchRequest` }),
        success: PspPage,
        error: errors
      }).annotateMerge(
        annotations({
          operation: [`psp-${kind}`, "search"],
          isContract: kind === "balance-transactions",
          summary: `Read ${title(kind)}`,
          description:
            "Reads live from the payment processor account connected to one clinic, newest first. For the next page, set `starting_after` to the id of the last object; there is no offset. A clinic without a connected account gets 400. A 503, with a `Retry-After` of 1 to 60 seconds, means that the processor failed, refused the read or did not respond within 8 seconds, or that the organization has 20 reads in flight.",
          request: { clinic: "clinic_oakridge_01", limit: 10 },
          statuses: {
            200: { example: { data: [{ id: `${prefix}_oakridge_0001`, object, created: 1767600000 }], has_more: true } }
          }
        })
      )
    )

/** The kinds of object that can be read, each with its group of the API. */
export const pspGroups = {
  payments: group("payments", "pi", "payment_intent"),
  charges: group("charges", "ch", "charge"),
  refunds: group("refunds", "re", "refund"),
  disputes: group("disputes", "dp", "dispute"),
  payouts: group("payouts", "po", "payout"),
  "balance-transactions": group("balance-transactions", "txn", "balance_transaction")
}
export type PspKind = keyof typeof pspGroups
