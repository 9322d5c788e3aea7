/** A delivery as it is scheduled: what it deletes, and what tells it from others. */
import { hash } from "node:crypto"
import { Array, Order } from "effect"
import * as Uuid from "uuid"
import { runSync, step } from "../http/TimeSlices.ts"
import type { DeliveryHeaders, InvoiceDeletions } from "../api/IntakeApi.ts"

/** An invoice to delete; null where the delivery does not say. */
export interface InvoiceRef {
  readonly invoice_id: string
  readonly clinic_id: string | null
  readonly client_id: string | null
}

/** An invoice line to delete; null where the delivery does not say. */
export interface InvoiceLineRef {
  readonly invoice_line_id: string
  readonly invoice_id: string | null
  readonly clinic_id: string | null
}

/** What a task deletes: sets of items, each item once. */
export interface Deletions {
  readonly invoices: ReadonlyArray<InvoiceRef>
  readonly invoice_lines: ReadonlyArray<InvoiceLineRef>
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

/** How many items are looked at between two pauses. */
const stride = 256

/** Each item once, with its JSON, in the order of the JSON. */
function* setOf<Item extends object>(
  items: ReadonlyArray<Item>
): Generator<void, ReadonlyArray<readonly [json: string, item: Item]>> {
  const byJson = new Map<string, Item>()
  for (const [index, item] of items.entries()) {
    if (index % stride === 0) yield
    byJson.set(JSON.stringify(item), item)
  }
  return yield* step(() => Array.sortWith(byJson, ([json]) => json, Order.String))
}

const jsonOf = (set: ReadonlyArray<readonly [json: string, item: unknown]>) =>
  `[${set.map(([json]) => json).join(",")}]`

const itemsOf = <Item>(set: ReadonlyArray<readonly [json: string, item: Item]>) => set.map(([, item]) => item)

/** The delivery of a request, in steps. */
export function* delivering(
  headers: Pick<DeliveryHeaders, "idempotency-key" | "x-organization-id">,
  { invoices = [], invoice_lines = [] }: InvoiceDeletions
): Generator<void, Delivery> {
  const organization = headers["x-organization-id"]
  const idempotencyKey = headers["idempotency-key"]
  const invoiceSet = yield* setOf<InvoiceRef>(
    invoices.map(({ invoice_id, clinic_id = null, client_id = null }) => ({ invoice_id, clinic_id, client_id }))
  )
  const lineSet = yield* setOf<InvoiceLineRef>(
    invoice_lines.map(({ invoice_line_id, invoice_id = null, clinic_id = null }) => ({
      invoice_line_id,
      invoice_id,
      clinic_id
    }))
  )
  // Stored tasks have fingerprints: the text must stay the JSON of the deletions.
  const fingerprint = yield* step(() =>
    hash("sha256", `{"invoices":${jsonOf(invoiceSet)},"invoice_lines":${jsonOf(lineSet)}}`, "buffer")
  )
  return {
    organization,
    idempotencyKey,
    taskId: taskIdOf(organization, idempotencyKey),
    fingerprint,
    deletions: { invoices: itemsOf(invoiceSet), invoice_lines: itemsOf(lineSet) },
    invoicesCount: invoices.length,
    invoiceLinesCount: invoice_lines.length
  }
}

/** The delivery of a request, at once. */
export const deliveryOf = (...request: Parameters<typeof delivering>): Delivery => runSync(delivering(...request))
