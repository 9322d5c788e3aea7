/** The request fields that all reads of records share, and the response of a change feed. */
import { Effect, Option, Schema, SchemaGetter } from "effect"
import { HttpApiSchema } from "effect/http-api"
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

export const pageOf = (request: { readonly limit?: number | null; readonly offset?: number | null }) =>
  Effect.flatMap(between("limit", request.limit ?? defaultLimit, 1, maximumLimit), (limit) =>
    Effect.map(between("offset", request.offset ?? 0, 0, maximumOffset), (offset): Page => ({ limit, offset }))
  )

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
      "Maximum seconds to wait for a change if there is none yet. The response is immediate if too many requests are waiting: one organization may use an eighth of the server's connections.",
      { minimum: 0, maximum: longestWait, default: 0 }
    )
  ),
  organization
}

export const lagHeader = "x-changes-lag"
export const completeHeader = "x-changes-complete"
export const nextHeader = "x-changes-next"

/** The longest cursor that is sent as a header too: proxies refuse responses with long headers. */
export const longestNext = 1000

/** The end of the body of every feed. */
export const nextFields = {
  cursor: Schema.String.annotate({
    description: "The position for the next request. Save it together with the records in this response.",
    examples: ["MS41YjBjOWQxZS4yZjdhNmM0MC4xLnhjLmh2MDVjLm5oLmNoYXJnZV9vYWtyaWRnZV8wMDEw919jq159"]
  }),
  has_more: Schema.Boolean.annotate({ description: "True if more changes are available now." })
}

export const lagField = Schema.Int.annotate({ description: "The delay of changes, in seconds." })

/** A response of a change feed: its body and its headers, which a typed client gets as one value. */
export const changesOf = <Fields extends Schema.Struct.Fields>(
  record: Schema.Struct<Fields>,
  annotations: { readonly identifier: string; readonly description: string }
) => {
  const body = Schema.Struct({
    body: Schema.Array(record).annotate({
      description: "The last committed state of new and changed records: upsert each by its `id`."
    }),
    removed: Schema.Array(Schema.String).annotate({
      description: "The ids of deleted records. Ignore ids that you never had.",
      examples: [[]]
    }),
    ...nextFields
  }).annotate(annotations)
  const [lag, complete] = [lagField, Schema.Boolean]
  return Schema.toType(Schema.Struct({ ...body.fields, lag, complete })).pipe(
    HttpApiSchema.encodeToWithHeaders(
      { body, headers: { [lagHeader]: lag, [completeHeader]: complete, [nextHeader]: Schema.optional(Schema.String) } },
      {
        decode: ({ body: page, headers }) => ({ ...page, lag: headers[lagHeader], complete: headers[completeHeader] }),
        encode: ({ complete: isComplete, lag: seconds, ...page }) => ({
          body: page,
          headers: { [lagHeader]: seconds, [completeHeader]: isComplete }
        })
      }
    )
  )
}

export const changesDescription = `The changes after \`cursor\`; without one, every record. See "By changes" in the introduction.

\`${lagHeader}\` is the delay in seconds of a replica behind an open transaction; a primary has none. \`${completeHeader}\` is \`true\` once you have every record that existed when you began without a cursor, except those changed since, which arrive as changes. 410 means that the order of changes restarted: start again without a cursor, with an empty copy.`
