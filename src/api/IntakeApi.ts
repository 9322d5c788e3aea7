/** The contract of version 1: the intake of invoice deletions, and the health of the service. */
import { Context, Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiMiddleware, HttpApiSchema, OpenApi } from "effect/http-api"
import { JsonBody } from "./JsonBody.ts"
import * as Documented from "./openapi/Intake.ts"
import * as Field from "./records/Field.ts"
import * as Filter from "./records/Filter.ts"
import { error, responseInvalid, responses, statusOf, Unauthorized } from "./Errors.ts"
import { annotations } from "./openapi/Endpoint.ts"
import { faults, patternMismatch, refuse, stringTooLong, tooLong } from "./Faults.ts"

/** The most items of a delivery. */
export const maximumItems = 10_000

const isNotBlank = Schema.makeFilter((text: string) => (text.trim() === "" ? refuse(faults.stringTooShort) : undefined))

const ownId = (description: string, example: string) => Filter.Text(description, example).check(isNotBlank)

// The contract does not say that these are required, and a refused delivery is a deletion that does not happen.
const otherId = (description: string, example: string) => Schema.optionalKey(Schema.NullOr(ownId(description, example)))

/** An invoice to delete, all its lines with it. */
export const DeletedInvoice = Schema.Struct({
  invoice_id: ownId("The invoice. All its lines are deleted with it.", "invoice_oakridge_0001"),
  clinic_id: otherId("Its home or servicing clinic. If it is another one, nothing is deleted.", "clinic_oakridge_01"),
  client_id: otherId("Its client. If it is another one, nothing is deleted.", "client_oakridge_0001")
}).annotate({ identifier: "DeletedInvoice" })

/** An invoice line to delete. */
export const DeletedInvoiceLine = Schema.Struct({
  invoice_line_id: ownId("The invoice line.", "line_oakridge_0002_1"),
  invoice_id: otherId("Its invoice. If it is another one, nothing is deleted.", "invoice_oakridge_0002"),
  clinic_id: otherId("Its clinic. If it is another one, nothing is deleted.", "clinic_oakridge_01")
}).annotate({ identifier: "DeletedInvoiceLine" })

const countOf = (items: ReadonlyArray<unknown> | undefined) => items?.length ?? 0

/** The items to delete. Unknown fields are ignored, since senders may add some. */
export const InvoiceDeletions = Schema.Struct({
  invoices: Schema.optionalKey(
    Schema.Array(DeletedInvoice).annotate({ description: "The invoices to delete, each with all its lines." })
  ),
  invoice_lines: Schema.optionalKey(
    Schema.Array(DeletedInvoiceLine).annotate({ description: "The invoice lines to delete." })
  )
})
  .annotate({ description: `The items to delete: invoices, lines, or both; from 1 to ${maximumItems} items together.` })
  .check(
    Schema.makeFilter(({ invoices, invoice_lines }) => {
      const count = countOf(invoices) + countOf(invoice_lines)
      if (count === 0) return refuse(faults.noItems)
      return count > maximumItems ? refuse(tooLong(maximumItems, count)) : undefined
    })
  )
  .annotate({ identifier: "InvoiceDeletions", maximumItems })
export type InvoiceDeletions = typeof InvoiceDeletions.Type

/** A header of 1 to `maxLength` characters. */
const header = (description: string, example: string, maxLength: number, form?: RegExp) => {
  const check = Schema.makeFilter(
    (text: string) => {
      if (text === "") return refuse(faults.stringTooShort)
      if (text.length > maxLength) return refuse(stringTooLong(maxLength))
      return form?.test(text) === false ? refuse(patternMismatch(form.source)) : undefined
    },
    { toJsonSchema: () => ({ minLength: 1, maxLength, ...(form && { pattern: form.source }) }) }
  )
  return Schema.String.annotate({ description, examples: [example] }).check(check)
}

/** A header of a signature. */
const signed = (description: string) =>
  Schema.optionalKey(Schema.String.annotate({ description: `Standard Webhooks: ${description}` }))

/** The headers of a delivery. Those of a signature matter only if the organization has a signing secret. */
export const DeliveryHeaders = Schema.Struct({
  "idempotency-key": header(
    "Unique per delivery. A delivery that is sent again with the same key is scheduled once.",
    "delivery-1",
    36,
    /^[\x20-\x7e]+$/
  ),
  "x-organization-id": header("The organization that owns the invoices.", "org_oakridge", 128),
  "webhook-id": signed("equals the Idempotency-Key."),
  "webhook-timestamp": signed("the time of the signature, in seconds since 1970."),
  "webhook-signature": signed("one or more signatures, separated by spaces.")
})
export type DeliveryHeaders = typeof DeliveryHeaders.Type

const count = (description: string) =>
  Schema.Int.annotate({ description, examples: [1] }).check(Schema.isBetween({ minimum: 0, maximum: maximumItems }))

export const DeliveryReceipt = Schema.Struct({
  status: Schema.Literals(["scheduled", "duplicate", "completed", "error"]).annotate({
    description: "Outcome of scheduling. `completed` is reserved."
  }),
  task_id: Schema.String.annotate({
    description: "Derived from the organization and the Idempotency-Key.",
    format: "uuid",
    examples: ["fedd6570-af5c-52fc-8fb8-9f96362f625f"]
  }),
  scheduled_for: Field.timestamp("The time at which the deletion runs."),
  idempotency_key: Schema.String.annotate({
    description: "The Idempotency-Key of the request.",
    examples: ["delivery-1"]
  }),
  invoices_count: count("The number of invoices in the delivery."),
  invoice_lines_count: count("The number of invoice lines in the delivery."),
  received_at: Field.dateTime("The time at which the delivery was received.")
}).annotate({ identifier: "DeliveryReceipt", description: "The receipt of a delivery." })
export type DeliveryReceipt = typeof DeliveryReceipt.Type

const receipt = (status: number) => DeliveryReceipt.pipe(HttpApiSchema.status(status))

/** 503: the store is down or busy, or the backlog of the organization is full. The sender retries with the same key. */
export class IntakeUnavailable extends error<IntakeUnavailable>()("IntakeUnavailable", 503, {
  receipt: DeliveryReceipt,
  retryAfter: Schema.Int
}) {}

const unavailable = IntakeUnavailable.pipe(
  HttpApiSchema.encodeToWithHeaders(
    { body: receipt(statusOf(IntakeUnavailable)), headers: { "retry-after": Schema.Int } },
    {
      decode: ({ body, headers }) => new IntakeUnavailable({ receipt: body, retryAfter: headers["retry-after"] }),
      encode: ({ receipt: body, retryAfter }) => ({ body, headers: { "retry-after": retryAfter } })
    }
  )
)

/** The sender of a delivery. `unavailable`: the secrets could not be read, so nothing may be accepted. */
export class Sender extends Context.Service<Sender, { readonly verification: "passed" | "unavailable" }>()(
  "practice-data/api/IntakeApi/Sender"
) {}

/**
 * Refuses a delivery with invalid headers, or without a required signature (Standard Webhooks). An organization without
 * a signing secret need not sign, unless the service requires it of all.
 */
export class SignedDelivery extends HttpApiMiddleware.Service<SignedDelivery, { provides: Sender }>()(
  "practice-data/api/IntakeApi/SignedDelivery",
  { error: [...responses(Unauthorized), responseInvalid] }
) {}

/** `POST /invoice-deletions`: schedules a deletion, once for each Idempotency-Key of an organization. */
export class InvoiceDeletionsApi extends HttpApiGroup.make("invoice-deletions")
  .annotateMerge(
    OpenApi.annotations({ description: "Notifications that invoices, or lines of invoices, were deleted." })
  )
  .add(
    HttpApiEndpoint.post("schedule", "/invoice-deletions", {
      headers: DeliveryHeaders,
      payload: InvoiceDeletions,
      success: [receipt(202), receipt(200)],
      error: unavailable
    }).annotateMerge(
      annotations({
        operation: ["invoice-deletions", "schedule"],
        isContract: true,
        summary: "Schedule a deletion",
        description:
          "Schedules the deletion of invoices, with all their lines, and of single invoice lines. Retries with the same Idempotency-Key and payload are idempotent: the deletion is scheduled once. The same key with another payload is refused with 422, and nothing is stored.",
        request: {
          invoices: [{ invoice_id: "invoice_oakridge_0001" }],
          invoice_lines: [{ invoice_line_id: "line_oakridge_0002_1" }]
        },
        statuses: Documented.delivery
      })
    )
  )
  .middleware(SignedDelivery)
  .middleware(JsonBody) {}

/** The intake of invoice deletions, version 1, relative to `/api/v1`. */
export class IntakeApi extends HttpApi.make("invoice-deletion-intake")
  .add(InvoiceDeletionsApi)
  .annotate(HttpApi.ParseOptions, { errors: "all" })
  .annotateMerge(Documented.intakeDocumentation) {}

const Check = Schema.Struct({
  status: Schema.Literals(["pass", "warn"]),
  output: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "HealthCheck", description: "The state of a dependency of the service." })

export const Health = Schema.Struct({
  status: Schema.Literals(["pass", "warn"]).annotate({ description: "`warn` when a check does not pass." }),
  version: Schema.String.annotate({ description: "Version of the service." }),
  checks: Schema.Record(Schema.String, Check).annotate({ description: "The dependencies of the service, by name." })
}).annotate({ identifier: "Health" })
export type Health = typeof Health.Type

export const Readiness = Schema.Struct({ ready: Schema.Boolean }).annotate({ identifier: "Readiness" })

export class HealthApi extends HttpApiGroup.make("health")
  .annotateMerge(OpenApi.annotations({ description: "The health and the readiness of the service." }))
  .add(
    HttpApiEndpoint.get("health", "/health", { success: Health }).annotateMerge(
      annotations({
        operation: ["health", "check"],
        summary: "Health",
        description:
          "200 as long as the process serves, within half a second. `warn` where a check does not pass; its `output` is the reason.",
        statuses: Documented.health
      })
    ),
    HttpApiEndpoint.get("ready", "/health/ready", {
      success: [Readiness, Readiness.pipe(HttpApiSchema.status(503))]
    }).annotateMerge(
      annotations({
        operation: ["health", "ready"],
        summary: "Readiness",
        description:
          "200 if requests may be sent here; 503 until the database is migrated, and while the service stops.",
        statuses: Documented.ready
      })
    )
  ) {}

/** The endpoints that every process serves beside its roles, relative to `/api/v1`. */
export class OperationsApi extends HttpApi.make("operations").add(HealthApi) {}

/** All of `/api/v1`. */
export const VersionOneApi = IntakeApi.addHttpApi(OperationsApi)
