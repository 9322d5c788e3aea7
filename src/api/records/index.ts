/**
 * The resources of the API, in the contract's order, and the feed of all their changes. The endpoints, the repositories,
 * the handlers, the demo data and the tests of a resource follow from its line here.
 */
import { Array, Schema, Struct } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import * as Errors from "../Errors.ts"
import { annotations, typeName } from "../openapi/Document.ts"
import { chargeAdjustments, chargePayments, chargeRefunds, charges } from "./Charges.ts"
import { consumptionLogs, invoiceLines, invoices } from "./Invoices.ts"
import * as Filter from "./Filter.ts"
import { clinics, organization, products } from "./Organizations.ts"
import { cancellationPaymentIntents, paymentIntents, paymentPlans } from "./Payments.ts"
import { petBenefits, pets, subscriptions } from "./Pets.ts"
import { changesFields, nextFields } from "./Requests.ts"
import { type Resource, type Stored } from "./Resource.ts"

export const searchable = Array.make(
  clinics,
  products,
  invoices,
  invoiceLines,
  consumptionLogs,
  petBenefits,
  charges,
  chargePayments,
  chargeAdjustments,
  chargeRefunds,
  paymentPlans,
  paymentIntents,
  cancellationPaymentIntents,
  pets,
  subscriptions
)

export const resources = Array.prepend(searchable, organization)

/** Stored records, by the name of their resource. */
export type Records = { readonly [R in (typeof resources)[number] as R["name"]]: ReadonlyArray<Stored<R>> }

/** The names of the resources that have a feed. */
export const names = Array.map(searchable, ({ name }) => name)
const Name = Schema.Literals(names)

const RequestedNames = Schema.Array(
  Schema.String.check(
    Schema.makeFilter(Schema.is(Name), {
      fault: { type: "literal_error", msg: `Input should be one of: ${names.join(", ")}` },
      toJsonSchema: () => ({ enum: names })
    })
  )
).check(
  Schema.isNonEmpty({ fault: { type: "too_short", msg: "List should have at least 1 item after validation, not 0" } })
)

type WrittenOf<R> =
  R extends Resource<infer N, infer Fields>
    ? Schema.Struct<{ readonly resource: Schema.Literal<N>; readonly record: Schema.Struct<Fields> }>
    : never

interface Written extends Struct.Lambda {
  <R extends Resource>(resource: R): WrittenOf<R>
  readonly "~lambda.out": WrittenOf<this["~lambda.in"]>
}

/** A new or changed record of a resource. */
const toWritten = Struct.lambda<Written>(({ name, record }) =>
  Schema.Struct({ resource: Schema.Literal(name), record }).annotate({ identifier: `${typeName(name)}Written` })
)

const Removed = Schema.Struct({
  resource: Name,
  removed: Schema.String.annotate({ description: "The id of a deleted record. Ignore it if you never had the record." })
}).annotate({ identifier: "RecordRemoved" })

const Reset = Schema.Struct({
  resource: Name,
  reset: Schema.Literal(true).annotate({
    description:
      "The table was emptied, or the resource is new to your cursor: its records follow. Once `has_more` is false, delete the records that did not arrive."
  })
}).annotate({ identifier: "ResourceReset" })

/** A page of the feed. */
export const Changes = Schema.Struct({
  body: Schema.Array(Schema.Union([...Array.map(searchable, toWritten), Removed, Reset])).annotate({
    description: "The changes. Apply them in order."
  }),
  ...nextFields,
  is_consistent: Schema.Boolean.annotate({
    description:
      "True if a copy with every response up to this one equals a past state of the database: each invoice with all its lines, each payment with its charge."
  }),
  schema: Schema.String.annotate({
    description: "A version of the records' fields. It changes when a field or a resource is added.",
    examples: ["a1b2c3d4"]
  })
}).annotate({ identifier: "Changes", description: "The next changes of the requested resources, in order." })

/** The group of the feed: `POST /changes`. */
export const allChanges = HttpApiGroup.make("changes")
  .annotateMerge(OpenApi.annotations({ description: "The changes of all resources, in one order." }))
  .add(
    HttpApiEndpoint.post("changes", "/changes", {
      payload: Schema.Struct({
        ...changesFields,
        resources: Filter.optional(RequestedNames.annotate({ description: "Names of resources; default all." }))
      }).annotate({ identifier: "ChangesRequest" }),
      success: Changes,
      error: Errors.responses(
        Errors.OrgMismatch,
        Errors.OutOfRange,
        Errors.CursorInvalid,
        Errors.CursorExpired,
        Errors.ChangesNotServed,
        Errors.RecordStoreDown
      )
    }).annotateMerge(
      annotations({
        operation: ["changes", "read"],
        summary: "Changes of resources",
        description: `The changes of all resources after \`cursor\`, in one order; without a cursor, every record. See "By changes" in the introduction.

A transaction that fits into one response is never split. You can add or remove names in \`resources\` at any time: the others continue, and a resource that is new to the cursor starts with a \`reset\`. 410 means that the order of changes restarted: start again without a cursor.`,
        request: { resources: ["invoices", "invoice-lines"], limit: 10 }
      })
    )
  )
