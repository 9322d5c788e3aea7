/** The document of version 1: the intake, and health. */
import * as Errors from "../Errors.ts"
import { faults } from "../Faults.ts"
import { signing } from "../Signing.ts"
import { documentation, errorStatus, internalError, type Status } from "./Document.ts"

const description = `
Takes notifications that invoices, or lines of invoices, were deleted, and deletes them a little later, once.

- A delivery may be sent any number of times with the same \`Idempotency-Key\`: it is stored once, and every response is that of the first. After a 503, a timeout or a broken connection, send it again with the same key.
- Extra ids of an item must match the record: an item with another clinic, client or invoice deletes nothing, and is counted by reason.
- Items are counted before they are looked at: more than 10,000 are refused with 422, and the count in the response is of those that were counted until then.
- A 422 lists the faults of a delivery all at once, up to 100. A response that refuses a delivery has at most 64 KiB.
- Check a delivery, and why items were not deleted, with \`POST /api/v3/invoice-deletions/get\` of the practice data API and an API key of the organization: \`{"idempotency_key": "..."}\`.
- Deliveries of an organization with a signing secret must be signed, and the service may require it of all: see below. Unsigned ones are otherwise accepted from anyone.
- What an organization has pending is bounded. Beyond, a delivery gets 503 and nothing is stored.

${signing}
`.trim()

// The contract shows no status of the intake.
const status = (text: string, example: unknown): Status => ({ description: text, example, isProvisional: true })

const checks = {
  records: { status: "pass" },
  credentials: { status: "pass" },
  tasks: { status: "pass" },
  changes: { status: "pass" },
  processor: { status: "warn", output: "Cannot be reached" }
}

const receipt = {
  status: "scheduled",
  task_id: "fedd6570-af5c-52fc-8fb8-9f96362f625f",
  scheduled_for: "2026-01-31T09:31:00.000Z",
  idempotency_key: "delivery-1",
  invoices_count: 1,
  invoice_lines_count: 1,
  received_at: "2026-01-31T09:30:00.000Z"
}

const intake: Readonly<Record<string, Status>> = {
  200: status("Stored before. The response is that of the first delivery, with status `duplicate`.", {
    ...receipt,
    status: "duplicate"
  }),
  202: status("Stored and committed: status `scheduled`.", receipt),
  401: errorStatus(
    "The delivery must be signed, and is not, or not as it should be. The detail names the header that is missing, too old or too new, or does not match; or says that the organization has no signing secret.",
    { detail: "The delivery is not signed as required: webhook-signature is missing" }
  ),
  413: errorStatus("The request body is larger than 4 MiB.", {
    detail: "The request body is larger than 4194304 bytes"
  }),
  415: errorStatus("The request has a Content-Encoding other than identity.", new Errors.EncodingUnsupported()),
  422: status(
    "The request does not have the shape that the endpoint takes, or its Idempotency-Key was used with another payload. Nothing is stored.",
    { detail: [{ loc: ["header", "idempotency-key"], ...faults.idempotencyKeyReused }] }
  ),
  500: internalError,
  503: status(
    "The store is down or busy, the service is reading too many large deliveries, or the organization has as much pending as it may: status `error`; the counts are 0 where the items were not read. Send the delivery again, with the same key, after `Retry-After` seconds.",
    { ...receipt, status: "error", received_at: null }
  )
}

const byPath: Readonly<Record<string, Readonly<Record<string, Status>>>> = {
  "/health": {
    200: status("The process serves.", { status: "warn", version: "0.1.0", checks }),
    500: internalError
  },
  "/health/ready": {
    200: status("Send requests here.", { ready: true }),
    500: internalError,
    503: status("Send no requests here.", { ready: false })
  }
}

/** The documentation of version 1. */
export const intakeDocumentation = documentation({
  title: "Invoice deletion intake",
  version: "1.0",
  description,
  url: "/api/v1",
  statuses: (path) => byPath[path] ?? intake
})
