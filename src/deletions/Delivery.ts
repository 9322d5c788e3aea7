/** A delivery as it is scheduled, and its decoding from the body of a request. */
import { hash } from "node:crypto"
import { Array, Effect, Order, Predicate, Result, Schema } from "effect"
import * as Uuid from "uuid"
import type { RequestInvalid, ValidationError } from "../api/Errors.ts"
import { faults, invalidAt, invalidRequest, maximumFaults, tooLong, validationErrors } from "../api/Faults.ts"
import {
  DeletedInvoice,
  DeletedInvoiceLine,
  type DeliveryHeaders,
  type InvoiceDeletions,
  maximumItems
} from "../api/IntakeApi.ts"

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
  /** The number of received items, repeated ones included. */
  readonly invoicesCount: number
  readonly invoiceLinesCount: number
}

const namespace = "6f0e4b7e-5d0b-4c39-9d5c-1f1b8e3f7a42"

/** The id of a task: always the same for the same organization and key. */
export const taskIdOf = (organization: string, idempotencyKey: string): string =>
  Uuid.v5(JSON.stringify([organization, idempotencyKey]), namespace)

/** Each item once, in the order of its JSON. */
const setOf = <Item extends object>(items: ReadonlyArray<Item>) =>
  Array.sortWith(new Map(items.map((item) => [JSON.stringify(item), item])), ([json]) => json, Order.String).map(
    ([, item]) => item
  )

// Stored tasks have fingerprints: the text must stay the JSON of the deletions.
const fingerprintOf = (deletions: Deletions) => hash("sha256", JSON.stringify(deletions), "buffer")

/** The headers that identify a delivery: with another value it would be another delivery. */
export type Identity = Pick<DeliveryHeaders, "idempotency-key" | "x-organization-id">

/** The delivery of a request. */
export const deliveryOf = (headers: Identity, { invoices = [], invoice_lines = [] }: InvoiceDeletions): Delivery => {
  const organization = headers["x-organization-id"]
  const idempotencyKey = headers["idempotency-key"]
  const deletions = {
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
    fingerprint: fingerprintOf(deletions),
    deletions,
    invoicesCount: invoices.length,
    invoiceLinesCount: invoice_lines.length
  }
}

const countOf = (list: unknown) => (Array.isArray(list) ? list.length : 0)

/** The number of items that are decoded before others have a turn: some milliseconds. */
const stride = 500

/** Decodes one of the lists, and adds its faults to `found`, until there are enough. */
const listOf = <Item>(name: "invoices" | "invoice_lines", item: Schema.Decoder<Item>) => {
  const decodeItem = Schema.decodeUnknownResult(item, { errors: "all" })
  return Effect.fnUntraced(function* (list: unknown, found: Array<ValidationError>) {
    const items: Array<Item> = []
    if (list === undefined) return items
    if (!Array.isArray(list)) found.push({ loc: ["body", name], ...faults.list })
    else
      for (const [index, each] of list.entries()) {
        const decoded = decodeItem(each)
        if (Result.isSuccess(decoded)) items.push(decoded.success)
        else found.push(...validationErrors(decoded.failure.issue, ["body", name, index]))
        if (found.length >= maximumFaults) break
        if (index % stride === stride - 1) yield* Effect.yieldNow
      }
    return items
  })
}

const invoicesOf = listOf("invoices", DeletedInvoice)
const linesOf = listOf("invoice_lines", DeletedInvoiceLine)

/** Decodes a body item by item, no further than there is room for faults: all faults of 20 KB took 30 ms. */
export const decode = Effect.fnUntraced(function* (body: unknown): Effect.fn.Return<InvoiceDeletions, RequestInvalid> {
  if (!Predicate.isObject(body)) return yield* invalidAt(["body"], faults.object)
  const { invoices, invoice_lines } = body
  const count = countOf(invoices) + countOf(invoice_lines)
  if (count > maximumItems) return yield* invalidAt(["body"], tooLong(maximumItems, maximumItems + 1))
  const found: Array<ValidationError> = []
  const decoded = { invoices: yield* invoicesOf(invoices, found), invoice_lines: yield* linesOf(invoice_lines, found) }
  if (found.length > 0) return yield* invalidRequest(found)
  return count === 0 ? yield* invalidAt(["body"], faults.noItems) : decoded
})
