/** The request fields that all reads of records share. */
import { Effect, Option, Schema, SchemaGetter } from "effect"
import { OutOfRange } from "../Errors.ts"
import { faults } from "../Faults.ts"
import * as Filter from "./Filter.ts"

export const defaultLimit = 100
export const maximumLimit = 1000
const maximumOffset = 2147483647

/** An integer. The range documents it, the handler checks it. One too large for a double reads as infinite: out of range. */
export const integer = (
  description: string,
  range: { readonly minimum: number; readonly maximum?: number; readonly default?: number }
) =>
  Schema.declare<number>((u) => typeof u === "number", { fault: faults.int, toCodecJson: () => undefined }).check(
    Schema.makeFilter((value: number) => Number.isInteger(value) || !Number.isFinite(value), {
      fault: faults.intFromFloat,
      toJsonSchema: () => ({
        type: "integer",
        format: (range.maximum ?? 0) > 2147483647 ? "int64" : "int32",
        ...range,
        description
      })
    })
  )

/** The organization; if present, it must be the key's own. */
export const organization = Filter.optional(
  Filter.Text("The organization of the API key. Any other organization gets 400.", "org_oakridge")
)

export const searchFields = {
  organization,
  limit: Filter.optional(
    integer("Maximum number of records to return.", { minimum: 1, maximum: maximumLimit, default: defaultLimit })
  ),
  offset: Filter.optional(integer("The number of records to skip.", { minimum: 0, maximum: maximumOffset, default: 0 }))
}

/** The page of a search: at most `limit` records, after the first `offset`. */
export interface Page {
  readonly limit: number
  readonly offset: number
}

export const between = (name: "limit" | "offset" | "wait", value: number, minimum: number, maximum: number) =>
  value >= minimum && value <= maximum
    ? Effect.succeed(value)
    : Effect.fail(new OutOfRange({ detail: `${name} must be between ${minimum} and ${maximum}` }))

export const toPage = Effect.fnUntraced(function* (request: {
  readonly limit?: number | null
  readonly offset?: number | null
}) {
  const limit = yield* between("limit", request.limit ?? defaultLimit, 1, maximumLimit)
  const offset = yield* between("offset", request.offset ?? 0, 0, maximumOffset)
  return { limit, offset } satisfies Page
})

/** Request fields of every single-record read. A missing id is read as a blank one, which is refused with 400. */
export const getFields = (exampleId: string) => ({
  id: Filter.optional(Filter.Text("Identifier of the record. 400 if it is missing or blank.", exampleId)).pipe(
    Schema.decodeTo(Schema.String, {
      decode: SchemaGetter.transformOptional((id) => Option.some(Option.getOrNull(id) ?? "")),
      encode: SchemaGetter.passthroughSupertype()
    })
  ),
  organization
})

export const maximumChanges = 1000

/** In seconds. */
export const longestWait = 20

export const changesFields = {
  cursor: Filter.optional(Filter.Text("The `cursor` of the previous response. Without one, you get every record.")),
  limit: Filter.optional(
    integer("Maximum number of changes to return, including removals.", {
      minimum: 1,
      maximum: maximumChanges,
      default: maximumChanges
    })
  ),
  wait: Filter.optional(
    integer(
      "Maximum seconds to wait for a change if there is none yet. The response is immediate if 100 requests are waiting.",
      { minimum: 0, maximum: longestWait, default: 0 }
    )
  ),
  organization
}

/** The position behind a page of changes. */
export const nextFields = {
  cursor: Schema.String.annotate({
    description: "The position for the next request. Save it together with the records in this response.",
    examples: ["MS41YjBjOWQxZS4yZjdhNmM0MC4xLnhjLmh2MDVjLm5oLmNoYXJnZV9vYWtyaWRnZV8wMDEw919jq159"]
  }),
  has_more: Schema.Boolean.annotate({ description: "True if more changes are available now." })
}
