/**
 * Reads a delivery from a request. The body is decoded item by item, so that a long one does not keep other requests
 * waiting, and no further than there is room for faults.
 */
import { IncomingMessage } from "node:http"
import { Effect, Predicate, Result, Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { RequestInvalid, ValidationError } from "../api/Errors.ts"
import { faults, invalidRequest, maximumFaults, tooLong, validationErrors } from "../api/Faults.ts"
import {
  DeletedInvoice,
  DeletedInvoiceLine,
  DeliveryHeaders,
  InvoiceDeletions,
  maximumItems
} from "../api/IntakeApi.ts"
import { wantedBy } from "../http/JsonPruning.ts"
import { parse, pruning, short } from "../http/JsonText.ts"
import { runSync, runSliced, step } from "../http/TimeSlices.ts"
import { type Delivery, delivering } from "./Delivery.ts"

/** The headers that identify a delivery: with another value it would be another delivery. */
const identifying = ["idempotency-key", "x-organization-id"] as const

/** The values of the headers that came more than once, which Node joins to one. */
const repeated = ({ source }: HttpServerRequest.HttpServerRequest) =>
  source instanceof IncomingMessage
    ? identifying.flatMap((name) => {
        const values = source.headersDistinct[name] ?? []
        return values.length > 1 ? [[name, values] as const] : []
      })
    : []

const decodeHeaders = Schema.decodeUnknownEffect(DeliveryHeaders, { errors: "all" })

/** The headers, or all that is wrong with them. A repeated header is an array, which is not a string. */
export const headersOf = (
  request: HttpServerRequest.HttpServerRequest
): Effect.Effect<DeliveryHeaders, RequestInvalid> =>
  Effect.mapError(decodeHeaders({ ...request.headers, ...Object.fromEntries(repeated(request)) }), ({ issue }) =>
    invalidRequest(validationErrors(issue, ["header"]))
  )

/** How many items are decoded between two pauses. */
const stride = 64

const decoders = {
  invoices: Schema.decodeUnknownResult(DeletedInvoice, { errors: "all" }),
  invoice_lines: Schema.decodeUnknownResult(DeletedInvoiceLine, { errors: "all" })
}

const countOf = (list: unknown) => (Array.isArray(list) ? list.length : 0)

/** Decodes one of the lists, and adds what is wrong with it to `found`. */
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

/** Decodes a body in steps: what it deletes, or what is wrong with it. */
export function* decoding(
  body: unknown
): Generator<void, Result.Result<InvoiceDeletions, ReadonlyArray<ValidationError>>> {
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

const wanted = wantedBy(InvoiceDeletions)

function* reading(headers: DeliveryHeaders, text: string): Generator<void, Result.Result<Delivery, RequestInvalid>> {
  const pruned = yield* pruning(text, wanted)
  if (Result.isFailure(pruned)) return Result.fail(pruned.failure)
  const body = yield* step(() => parse(pruned.success))
  if (Result.isFailure(body)) return Result.fail(body.failure)
  const decoded = yield* decoding(body.success)
  if (Result.isFailure(decoded)) return Result.fail(invalidRequest(decoded.failure))
  return Result.succeed(yield* delivering(headers, decoded.success))
}

/** The delivery of a request, or what is wrong with its body. */
export const read = Effect.fnUntraced(function* (
  headers: DeliveryHeaders,
  request: HttpServerRequest.HttpServerRequest
) {
  const text = yield* Effect.orDie(request.text)
  return yield* Effect.fromResult(
    text.length <= short ? runSync(reading(headers, text)) : yield* runSliced(() => reading(headers, text))
  )
})
