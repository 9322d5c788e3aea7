/** The contract of the intake of invoice deletions, version 1. */
import { Context, Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiMiddleware, HttpApiSchema, OpenApi } from "effect/http-api"
import { JsonBody } from "./Authorization.ts"
import { OperationsApi } from "./HealthApi.ts"
import * as Field from "./records/Field.ts"
import * as Filter from "./records/Filter.ts"
import * as Errors from "./Errors.ts"
import { annotations, bodyStatuses, documentation, errorStatus, type Status } from "./openapi/Document.ts"
import { faults, patternMismatch, stringTooLong } from "./Faults.ts"

/** The most items of a delivery, of both kinds together. */
export const maximumItems = 3000

// The example of a signed delivery runs as it is, with `INTAKE`, `ORGANIZATION` and `SECRET` in the environment.
const introduction = `
Accepts notifications of deleted invoices and invoice lines, and deletes them shortly afterwards, exactly once.

- Retries are idempotent: a delivery with the same \`Idempotency-Key\` is stored once, and every retry gets the first response. After a 503, a timeout or a broken connection, retry with the same key.
- Extra ids of an item must match the record; mismatches are skipped and counted by reason.
- A deleted record stays deleted, however it is written later, unless the operator undoes the deletion. A deletion may arrive before its record: an item that was not found is remembered for 90 days, unless the operator sets another time, and its record is deleted on arrival.
- More than ${maximumItems.toLocaleString("en")} items get 422.
- A 422 lists up to 100 faults of a delivery. An error body is at most 64 KiB. \`x-error\` is the error code.
- Check a delivery, and why items were skipped, with \`POST /api/v3/invoice-deletions/get\` of the practice data API and your API key: \`{"idempotency_key": "..."}\`.
- Deliveries of an organization with a signing secret must be signed, and the service may require signatures from everyone: see below. Otherwise unsigned deliveries are accepted from anyone. Once its secrets are revoked, an organization gets 401 until the operator allows unsigned deliveries.
- Pending deliveries are limited per organization; all unknown organizations share one limit. Over the limit, a delivery gets 503 and nothing is stored.

## Sign a delivery

If the organization has a signing secret, sign its deliveries as [Standard Webhooks](https://www.standardwebhooks.com) describes:

1. \`webhook-id\` is the Idempotency-Key, and \`webhook-timestamp\` the time of sending as Unix time in seconds, accurate to 300 seconds.
2. The key is the part of the secret after \`whsec_\`, decoded from base64: bytes, not text.
3. The signature is the HMAC-SHA256 of \`webhook-id\`, a dot, \`webhook-timestamp\`, a dot and the body, byte for byte as sent.
4. \`webhook-signature\` is \`v1,\` and the signature in base64. During a rotation, send several separated by spaces; one valid signature is enough.

The same headers with the prefix \`svix-\` are read where a delivery has none with \`webhook-\`: with both sets, \`webhook-\` decides.

A retry keeps the Idempotency-Key and the body, with a new timestamp and signature. A 401 names the invalid header.

To try it with curl and openssl, set the address of this API, the organization and its secret, then run the script as is. (While openssl runs, other users of the machine can see its arguments, including the key.)

\`\`\`sh
export INTAKE=https://practice-data.example/api/v1 ORGANIZATION=org_1 SECRET=whsec_...
\`\`\`

\`\`\`sh
id=$(openssl rand -hex 16)
timestamp=$(date +%s)
body='{"invoices":[{"invoice_id":"invoice_1"}]}'
key=$(printf %s "\${SECRET#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \\n')
signature=$(printf %s "$id.$timestamp.$body" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | openssl base64 -A)

curl -sS "$INTAKE/invoice-deletions" --data-raw "$body" -H 'Content-Type: application/json' \\
  -H "X-Organization-Id: $ORGANIZATION" -H "Idempotency-Key: $id" \\
  -H "webhook-id: $id" -H "webhook-timestamp: $timestamp" -H "webhook-signature: v1,$signature"
\`\`\`

In JavaScript, \`new Webhook(secret).sign(id, new Date(), body)\` of \`standardwebhooks\` makes the signature.
`.trim()

const ownId = (description: string, example: string) =>
  Filter.Text(description, example).check(
    Schema.makeFilter((text) => text.trim() !== "", { fault: faults.stringTooShort })
  )

// The contract does not say that these are required, and a refused delivery is a deletion that does not happen.
const otherId = (description: string, example: string) => Schema.optionalKey(Schema.NullOr(ownId(description, example)))

/** An invoice to delete, with all its lines. */
export const DeletedInvoice = Schema.Struct({
  invoice_id: ownId("The invoice. All its lines are deleted with it.", "invoice_oakridge_0001"),
  clinic_id: otherId("Its home or servicing clinic. On a mismatch, the item is skipped.", "clinic_oakridge_01"),
  client_id: otherId("Its client. On a mismatch, the item is skipped.", "client_oakridge_0001")
}).annotate({ identifier: "DeletedInvoice" })

export const DeletedInvoiceLine = Schema.Struct({
  invoice_line_id: ownId("The invoice line.", "line_oakridge_0002_1"),
  invoice_id: otherId("Its invoice. On a mismatch, the item is skipped.", "invoice_oakridge_0002"),
  clinic_id: otherId("Its clinic. On a mismatch, the item is skipped.", "clinic_oakridge_01")
}).annotate({ identifier: "DeletedInvoiceLine" })

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
    Schema.makeFilter(({ invoices = [], invoice_lines = [] }) => invoices.length + invoice_lines.length > 0, {
      fault: faults.noItems
    })
  )
  .annotate({ identifier: "InvoiceDeletions" })
export type InvoiceDeletions = typeof InvoiceDeletions.Type

const visible = /^[\x20-\x7e]+$/

/** A header of 1 to `maxLength` printable ASCII characters. */
const header = (description: string, example: string, maxLength: number) =>
  Schema.String.annotate({ description, examples: [example] }).check(
    Schema.isNonEmpty({ fault: faults.stringTooShort }).abort(),
    Schema.isMaxLength(maxLength, { fault: stringTooLong(maxLength) }).abort(),
    Schema.isPattern(visible, {
      fault: patternMismatch(visible.source),
      toJsonSchema: () => ({ pattern: visible.source })
    })
  )

const signed = (description: string) => Schema.optionalKey(Schema.String.annotate({ description }))

/** The headers of a delivery. Those of a signature matter only if the organization has a signing secret. */
export const DeliveryHeaders = Schema.Struct({
  "idempotency-key": header("Unique per delivery. Retries with the same key are scheduled once.", "delivery-1", 36),
  "x-organization-id": header("The organization that owns the invoices.", "org_oakridge", 128),
  "webhook-id": signed("Standard Webhooks: equals the Idempotency-Key."),
  "webhook-timestamp": signed("Standard Webhooks: the time of the signature, in seconds since 1970."),
  "webhook-signature": signed("Standard Webhooks: one or more signatures, separated by spaces."),
  "svix-id": signed("As webhook-id, for senders such as Svix. Ignored beside any webhook- header."),
  "svix-timestamp": signed("As webhook-timestamp."),
  "svix-signature": signed("As webhook-signature.")
})
export type DeliveryHeaders = typeof DeliveryHeaders.Type

const exampleReceipt = {
  status: "scheduled",
  task_id: "fedd6570-af5c-52fc-8fb8-9f96362f625f",
  scheduled_for: "2026-01-31T09:31:00.000Z",
  idempotency_key: "delivery-1",
  invoices_count: 1,
  invoice_lines_count: 1,
  received_at: "2026-01-31T09:30:00.000Z"
}

const count = (description: string) =>
  Schema.Int.annotate({ description, examples: [1] }).check(Schema.isBetween({ minimum: 0, maximum: maximumItems }))

export const DeliveryReceipt = Schema.Struct({
  status: Schema.Literals(["scheduled", "duplicate", "completed", "error"]).annotate({
    description: "Outcome of scheduling. `completed` is reserved."
  }),
  task_id: Schema.String.annotate({
    description: "Derived from the organization and the Idempotency-Key.",
    format: "uuid",
    examples: [exampleReceipt.task_id]
  }),
  scheduled_for: Field.timestamp("Time at which the deletion is due."),
  idempotency_key: Schema.String.annotate({
    description: "The Idempotency-Key of the request.",
    examples: [exampleReceipt.idempotency_key]
  }),
  invoices_count: count("The number of invoices in the delivery."),
  invoice_lines_count: count("The number of invoice lines in the delivery."),
  received_at: Field.dateTime("Time at which the delivery was received.")
}).annotate({ identifier: "DeliveryReceipt", description: "The receipt of a delivery." })
export type DeliveryReceipt = typeof DeliveryReceipt.Type

const receipt = (status: number) => DeliveryReceipt.pipe(HttpApiSchema.status(status))

/** 503: the store is down or busy, or the backlog of the organization is full. The sender retries with the same key. */
export class IntakeUnavailable extends Errors.error<IntakeUnavailable>()("IntakeUnavailable", 503, {
  receipt: DeliveryReceipt,
  retryAfter: Schema.Int
}) {}

const unavailable = Errors.response(
  [IntakeUnavailable],
  receipt(Errors.statusOf(IntakeUnavailable)),
  (failure) => failure.receipt,
  (given, retryAfter) => new IntakeUnavailable({ receipt: given, retryAfter })
)

/** The sender of a delivery. `unavailable`: the secrets could not be read, so nothing may be accepted. */
export class Sender extends Context.Service<Sender, { readonly verification: "passed" | "unavailable" }>()(
  "practice-data/api/IntakeApi/Sender"
) {}

/** Refuses a delivery with invalid headers, or without a signature where its organization or the service requires one. */
export class SignedDelivery extends HttpApiMiddleware.Service<SignedDelivery, { provides: Sender }>()(
  "practice-data/api/IntakeApi/SignedDelivery",
  { error: [...Errors.responses(Errors.Unauthorized), Errors.responseInvalid] }
) {}

const statuses: Readonly<Record<string, Status>> = {
  200: {
    description: "Already stored. Repeats the first response, with status `duplicate`.",
    example: { ...exampleReceipt, status: "duplicate" }
  },
  202: { description: "Stored and committed: status `scheduled`.", example: exampleReceipt },
  401: errorStatus(
    "The required signature is missing or invalid. `detail` names the header that is missing, too old, too new, or does not match; or states that the organization has no signing secret.",
    { detail: "The delivery is not signed as required: webhook-signature is missing" }
  ),
  ...bodyStatuses,
  422: {
    description:
      "The request does not match the schema of the endpoint, or its Idempotency-Key was used with another payload. Nothing is stored.",
    example: { detail: [{ loc: ["header", "idempotency-key"], ...faults.idempotencyKeyReused }] }
  },
  503: {
    description:
      "The store is down or busy, or the organization has too many pending items: status `error`. Retry with the same key after `Retry-After` seconds.",
    example: { ...exampleReceipt, status: "error", received_at: null }
  }
}

/** `POST /invoice-deletions`: schedules a deletion, once for each Idempotency-Key of an organization. */
class InvoiceDeletionsApi extends HttpApiGroup.make("invoice-deletions")
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
          "Schedules the deletion of invoices, with all their lines, and of single invoice lines. Retries with the same Idempotency-Key and payload are idempotent. The same key with another payload gets 422, and nothing is stored.",
        request: {
          invoices: [{ invoice_id: "invoice_oakridge_0001" }],
          invoice_lines: [{ invoice_line_id: "line_oakridge_0002_1" }]
        },
        statuses
      })
    )
  )
  .middleware(SignedDelivery)
  .middleware(JsonBody) {}

/** The intake of invoice deletions, version 1, relative to `/api/v1`. */
export class IntakeApi extends HttpApi.make("invoice-deletion-intake")
  .add(InvoiceDeletionsApi)
  .annotate(HttpApi.ParseOptions, { errors: "all" })
  .annotateMerge(
    documentation({ title: "Invoice deletion intake", version: "1.0", description: introduction, url: "/api/v1" })
  ) {}

/** All of `/api/v1`. */
export const VersionOneApi = IntakeApi.addHttpApi(OperationsApi)
