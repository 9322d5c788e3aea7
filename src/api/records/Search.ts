/**
 * The request fields that all reads of records share: organization, limit, offset and id.
 *
 * Contract: section 4.1, "Common list request fields" and "Single-record reads", and section 8.
 */
import { Effect, Option, Schema, SchemaGetter } from "effect"
import { OutOfRange } from "../Errors.ts"
import { faults, refuse } from "../Faults.ts"
import * as Filter from "./Filter.ts"

export const defaultLimit = 100
export const maximumLimit = 1000
export const maximumOffset = 2147483647

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

/** Request field: the organization; where present it must be the key's own. */
export const organization = Filter.optional(
  Filter.Text("The organization of the API key. Optional; another one is refused with 400.", "org_oakridge")
)

/** Request fields of every search. */
export const searchFields = {
  organization,
  limit: Filter.optional(
    integer("How many records to return at most.", { minimum: 1, maximum: maximumLimit, default: defaultLimit })
  ),
  offset: Filter.optional(integer("How many records to skip.", { minimum: 0, maximum: maximumOffset, default: 0 }))
}

/** The page of a search: at most `limit` records, after the first `offset`. */
export interface Page {
  readonly limit: number
  readonly offset: number
}

/** Fails where a parameter is out of range. */
export const between = (name: "limit" | "offset" | "wait", value: number, minimum: number, maximum: number) =>
  value >= minimum && value <= maximum
    ? Effect.succeed(value)
    : Effect.fail(new OutOfRange({ detail: `${name} must be between ${minimum} and ${maximum}` }))

/** The page of a request. */
export const pageOf = (request: { readonly limit?: number | null; readonly offset?: number | null }) =>
  Effect.flatMapEager(between("limit", request.limit ?? defaultLimit, 1, maximumLimit), (limit) =>
    Effect.mapEager(between("offset", request.offset ?? 0, 0, maximumOffset), (offset): Page => ({ limit, offset }))
  )

const blank = ""

/** Request fields of every single-record read. An id that is missing is read as a blank one, which is refused with 400. */
export const getFields = {
  id: Filter.optional(Filter.Text("Identifier of the record. 400 where it is missing or blank.")).pipe(
    Schema.decodeTo(Schema.String, {
      decode: SchemaGetter.transformOptional(
        Option.match({
          onNone: () => Option.some(blank),
          onSome: (id) => Option.some(id ?? blank)
        })
      ),
      encode: SchemaGetter.passthroughSupertype()
    })
  ),
  organization
}
