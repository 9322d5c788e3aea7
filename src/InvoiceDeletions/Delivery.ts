/** A delivery as it is scheduled: what it deletes, and what tells it from others. */
import { hash } from "node:crypto"
import { Array, Order } from "effect"
import * as Uuid from "uuid"
import type { DeliveryHeaders, InvoiceDeletions } from "./InvoiceDeletionsApi.ts"

/** An invoice to delete; null where the delivery does not say. */
export interface NamedInvoice {
  readonly invoice_id: string
  readonly clinic_id: string | null
  readonly client_id: string | null
}

/** An invoice line to delete; null where the delivery does not say. */
export interface NamedInvoiceLine {
  readonly invoice_line_id: string
  readonly invoice_id: string | null
  readonly clinic_id: string | null
}

/** What a task deletes: sets of items, each item once. */
export interface Deletions {
  readonly invoices: ReadonlyArray<NamedInvoice>
  readonly invoice_lines: ReadonlyArray<NamedInvoiceLine>
}

export interface Delivery {
  readonly organization: string
  readonly idempotencyKey: string
  /** UUID version 5 of the organization and the key. */
  readonly taskId: string
  /** SHA-256 over the sets of items: the same for the same items, whatever their order or repetition. */
  readonly fingerprint: Uint8Array
  readonly deletions: Deletions
  /** How many items were received, repeated ones included. */
  readonly invoicesCount: number
  readonly invoiceLinesCount: number
}

const namespace = "6f0e4b7e-5d0b-4c39-9d5c-1f1b8e3f7a42"

/** The id of a task: the same for the same organization and key, whenever and wherever it is derived. */
export const taskIdOf = (organization: string, idempotencyKey: string): string =>
  Uuid.v5(JSON.stringify([organization, idempotencyKey]), namespace)

/** Each item once, in an order of their own. */
const setOf = <Item extends object>(items: ReadonlyArray<Item>): ReadonlyArray<Item> => {
  const byText = new Map(items.map((item) => [JSON.stringify(item), item]))
  return Array.sortBy(Order.mapInput(Order.String, ([text]: readonly [string, Item]) => text))(byText).map(
    ([, item]) => item
  )
}

/** The delivery of a request. */
export const deliveryOf = (
  headers: Pick<DeliveryHeaders, "idempotency-key" | "x-organization-id">,
  { invoices = [], invoice_lines = [] }: InvoiceDeletions
): Delivery => {
  const organization = headers["x-organization-id"]
  const idempotencyKey = headers["idempotency-key"]
  const deletions: Deletions = {
    invoices: setOf(
      invoices.map(({ invoice_id, clinic_id = null, client_id = null }) => ({ invoice_id, clinic_id, client_id }))
    ),
    invoice_lines: setOf(
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
    taskId: taskIdOf(organization, idempotencyKey),
    fingerprint: hash("sha256", JSON.stringify(deletions), "buffer"),
    deletions,
    invoicesCount: invoices.length,
    invoiceLinesCount: invoice_lines.length
  }
}
