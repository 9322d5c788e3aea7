/** The document of version 1: the intake, and health. */
import { faults } from "../Faults.ts"
import { signing } from "../Signing.ts"
import { bodyStatuses, documentation, errorStatus } from "./Document.ts"
import type { Status } from "./Endpoint.ts"

const description = `
Takes notifications that invoices or invoice lines were deleted, and deletes them a little later, once.

- Retries are idempotent: a delivery with the same \`Idempotency-Key\` is stored once, and every response is that of the first. After a 503, a timeout or a broken connection, send it again with the same key.
- Extra ids of an item must match the record; mismatches are skipped and counted by reason.
- More than 10,000 items get 422; the count in the response stops where the service stopped counting.
- A 422 lists all faults of a delivery, up to 100. A refusal has at most 64 KiB.
- Check a delivery, and why items were skipped, with \`POST /api/v3/invoice-deletions/get\` of the practice data API and your API key: \`{"idempotency_key": "..."}\`.
- Deliveries of an organization with a signing secret must be signed, and the service may require it of all: see below. Otherwise unsigned ones are accepted from anyone.
- The pending deliveries of an organization are bounded. Beyond, a delivery gets 503 and nothing is stored.

${signing}
`.trim()

const receipt = {
  status: "scheduled",
  task_id: "fedd6570-af5c-52fc-8fb8-9f96362f625f",
  scheduled_for: "2026-01-31T09:31:00.000Z",
  idempotency_key: "delivery-1",
  invoices_count: 1,
  invoice_lines_count: 1,
  received_at: "2026-01-31T09:30:00.000Z"
}

/** The statuses of a delivery. */
export const delivery: Readonly<Record<string, Status>> = {
  200: {
    description: "Stored before. The response is that of the first delivery, with status `duplicate`.",
    example: { ...receipt, status: "duplicate" }
  },
  202: { description: "Stored and committed: status `scheduled`.", example: receipt },
  401: errorStatus(
    "The required signature is missing or invalid. The detail names the header that is missing, too old, too new, or does not match; or says that the organization has no signing secret.",
    { detail: "The delivery is not signed as required: webhook-signature is missing" }
  ),
  ...bodyStatuses(4),
  422: {
    description:
      "The request does not match the schema of the endpoint, or its Idempotency-Key was used with another payload. Nothing is stored.",
    example: { detail: [{ loc: ["header", "idempotency-key"], ...faults.idempotencyKeyReused }] }
  },
  503: {
    description:
      "The store is down or busy, the service is reading too many large deliveries, or too much of the organization is pending: status `error`; the counts are 0 if the items were not read. Send the delivery again, with the same key, after `Retry-After` seconds.",
    example: { ...receipt, status: "error", received_at: null }
  }
}

/** The statuses of health and readiness. */
export const health: Readonly<Record<string, Status>> = {
  200: {
    description: "The process serves.",
    example: {
      status: "warn",
      version: "0.1.0",
      checks: { processor: { status: "warn", output: "Cannot be reached" } }
    }
  }
}
export const ready: Readonly<Record<string, Status>> = {
  200: { description: "Send requests here.", example: { ready: true } },
  503: { description: "Send no requests here.", example: { ready: false } }
}

export const intakeDocumentation = documentation({
  title: "Invoice deletion intake",
  version: "1.0",
  description,
  url: "/api/v1"
})
