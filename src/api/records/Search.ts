/**
 * What all reads of records share: the organization, limit, offset and id of a request.
 *
 * Contract: section 4.1, "Common list request fields" and "Single-record reads", and section 8.
 */
import { Effect, Schema } from "effect"
import { IdRequired, OutOfRange } from "../Errors.ts"
import { faults, refuse } from "../Faults.ts"
import * as Filter from "./Filter.ts"

const maximumLimit = 1000
const maximumOffset = 2147483647

// An integer that is too large for a double reads as infinite: out of range, and still an integer.
const isInteger = (value: number) => Number.isInteger(value) || !Number.isFinite(value)

/** Request field: an integer. The range is for the reader; who reads the value checks it. */
export const integer = (
  description: string,
  range: { readonly minimum: number; readonly maximum?: number; readonly default?: number }
) =>
  Schema.declare<number>((u) => typeof u === "number", { fault: faults.int, toCodecJson: () => undefined }).check(
    Schema.makeFilter((value: number) => (isInteger(value) ? undefined : refuse(faults.intFromFloat)), {
      toJsonSchema: () => ({
        type: "integer",
        format: (range.maximum ?? 0) > 2147483647 ? "int64" : "int32",
        ...range,
        description
      })
    })
  )

/** The page of a search: at most `limit` records, after the first `offset`. */
export interface Page {
  readonly limit: number
  readonly offset: number
}

/** Request field: the organization; where present it must be the key's own. */
export const organization = Filter.optional(
  Filter.Text("The organization of the API key. Optional; another one is refused with 400.")
)

/** Request fields of every search. */
export const searchFields = {
  organization,
  limit: Filter.optional(
    integer("How many records to return at most.", { minimum: 1, maximum: maximumLimit, default: 100 })
  ),
  offset: Filter.optional(integer("How many records to skip.", { minimum: 0, maximum: maximumOffset, default: 0 }))
}

/** Request fields of every single-record read. */
export const getFields = {
  id: Filter.optional(Filter.Text("Identifier of the record. Required: 400 where it is missing or blank.")),
  organization
}

const between = (name: "limit" | "offset", value: number, minimum: number, maximum: number) =>
  value >= minimum && value <= maximum
    ? Effect.succeed(value)
    : Effect.fail(new OutOfRange({ detail: `${name} must be between ${minimum} and ${maximum}` }))

/** The page that a request asks for. */
export const pageOf = (request: {
  readonly limit?: number | null
  readonly offset?: number | null
}): Effect.Effect<Page, OutOfRange> =>
  Effect.all({
    limit: between("limit", request.limit ?? 100, 1, maximumLimit),
    offset: between("offset", request.offset ?? 0, 0, maximumOffset)
  })

/** The id that a single-record read asks for. */
export const idOf = (request: { readonly id?: string | null }): Effect.Effect<string, IdRequired> =>
  request.id === undefined || request.id === null || request.id.trim() === ""
    ? Effect.fail(new IdRequired())
    : Effect.succeed(request.id)
