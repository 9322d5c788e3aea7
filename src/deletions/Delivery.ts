/** A delivery as it is scheduled, and its receipt. */
import { hash } from "node:crypto"
import { Array, DateTime, type Duration, Effect, Order, Schema } from "effect"
import * as Uuid from "uuid"
import type { DeletedInvoice, DeletedInvoiceLine, DeliveryHeaders, InvoiceDeletions } from "../api/IntakeApi.ts"

/** The items that a task deletes: sets, each item once. Ids that the delivery does not have are null. */
export interface Deletions {
  readonly invoices: ReadonlyArray<Required<typeof DeletedInvoice.Type>>
  readonly invoice_lines: ReadonlyArray<Required<typeof DeletedInvoiceLine.Type>>
}

export interface Delivery {
  readonly organization: string
  readonly idempotencyKey: string
  /** UUID version 5 of the organization and the key. */
  readonly taskId: string
  /** SHA-256 over the sets of items: the same for the same items, whatever their order or repetition. */
  readonly fingerprint: Uint8Array
  readonly deletions: Deletions
  /** The numbers of received items, repeated ones included. */
  readonly counts: Pick<Receipt, "invoices_count" | "invoice_lines_count">
}

const namespace = "6f0e4b7e-5d0b-4c39-9d5c-1f1b8e3f7a42"

/** The id of a task: always the same for the same organization and key. */
export const makeTaskId = (organization: string, idempotencyKey: string): string =>
  Uuid.v5(JSON.stringify([organization, idempotencyKey]), namespace)

/** Each item once, in the order of its JSON. */
const distinctItems = <Item extends object>(items: ReadonlyArray<Item>) =>
  Array.sortWith(new Map(items.map((item) => [JSON.stringify(item), item])), ([json]) => json, Order.String).map(
    ([, item]) => item
  )

/** The delivery of a request, which these headers identify. */
export const makeDelivery = (
  headers: Pick<DeliveryHeaders, "idempotency-key" | "x-organization-id">,
  { invoices = [], invoice_lines = [] }: InvoiceDeletions
): Delivery => {
  const organization = headers["x-organization-id"]
  const idempotencyKey = headers["idempotency-key"]
  const deletions = {
    invoices: distinctItems(
      invoices.map(({ invoice_id, clinic_id = null, client_id = null }) => ({ invoice_id, clinic_id, client_id }))
    ),
    invoice_lines: distinctItems(
      invoice_lines.map(({ invoice_line_id, invoice_id = null, clinic_id = null }) => ({
        invoice_line_id,
        invoice_id,
        clinic_id
      }))
    )
  }
  return {
    organization,
    idempotencyKey,
    taskId: makeTaskId(organization, idempotencyKey),
    // Stored tasks have fingerprints: the text must stay the JSON of the deletions.
    fingerprint: hash("sha256", JSON.stringify(deletions), "buffer"),
    deletions,
    counts: { invoices_count: invoices.length, invoice_lines_count: invoice_lines.length }
  }
}

/** The part of a delivery that the row of its task keeps. */
export const Receipt = Schema.Struct({
  received_at: Schema.DateTimeUtcFromDate,
  scheduled_for: Schema.DateTimeUtcFromDate,
  invoices_count: Schema.Int,
  invoice_lines_count: Schema.Int
})
export type Receipt = typeof Receipt.Type

/** The receipt of a delivery that is received now. `delay`: from then to running it. */
export const makeReceipt = ({ counts }: Pick<Delivery, "counts">, delay: Duration.Duration) =>
  Effect.map(DateTime.now, (now): Receipt => ({
    received_at: now,
    scheduled_for: DateTime.addDuration(now, delay),
    ...counts
  }))
