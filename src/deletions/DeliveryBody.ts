/**
 * Decodes the body of a delivery item by item, so that a long one does not keep others waiting, and no further than
 * there is room for faults.
 */
import { Predicate, Result, Schema } from "effect"
import type { ValidationError } from "../api/Errors.ts"
import { faults, maximumFaults, tooLong, validationErrors } from "../api/Faults.ts"
import { DeletedInvoice, DeletedInvoiceLine, type InvoiceDeletions, maximumItems } from "../api/IntakeApi.ts"

/** What a delivery names, or what is wrong with it. */
export type Decoded = Result.Result<InvoiceDeletions, ReadonlyArray<ValidationError>>

/** How many items are decoded between two pauses. */
const stride = 64

const decoders = {
  invoices: Schema.decodeUnknownResult(DeletedInvoice, { errors: "all" }),
  invoice_lines: Schema.decodeUnknownResult(DeletedInvoiceLine, { errors: "all" })
}

const countOf = (list: unknown) => (Array.isArray(list) ? list.length : 0)

/** Decodes one of the lists; what is wrong with it is added to the faults. */
function* decodeList<Item>(
  name: keyof typeof decoders,
  list: unknown,
  decode: (item: unknown) => Result.Result<Item, Schema.SchemaError>,
  found: Array<ValidationError>
): Generator<void, ReadonlyArray<Item>> {
  const items: Array<Item> = []
  if (list === undefined) return items
  if (!Array.isArray(list)) {
    found.push({ loc: ["body", name], ...faults.list })
    return items
  }
  for (const [index, item] of list.entries()) {
    if (index % stride === 0) yield
    const decoded = decode(item)
    if (Result.isSuccess(decoded)) items.push(decoded.success)
    else found.push(...validationErrors(decoded.failure.issue, ["body", name, index]))
    if (found.length >= maximumFaults) break
  }
  return items
}

/** Decodes a body, pausing now and then. */
export function* decoding(body: unknown): Generator<void, Decoded> {
  if (!Predicate.isObject(body)) return Result.fail([{ loc: ["body"], ...faults.object }])
  const { invoices, invoice_lines } = body
  const count = countOf(invoices) + countOf(invoice_lines)
  if (count > maximumItems) return Result.fail([{ loc: ["body"], ...tooLong(maximumItems, count) }])
  const found: Array<ValidationError> = []
  const decoded = {
    invoices: yield* decodeList("invoices", invoices, decoders.invoices, found),
    invoice_lines: yield* decodeList("invoice_lines", invoice_lines, decoders.invoice_lines, found)
  }
  if (found.length > 0) return Result.fail(found)
  return count === 0 ? Result.fail([{ loc: ["body"], ...faults.noItems }]) : Result.succeed(decoded)
}
