/** The request and the response of the endpoints that tell the changes of a resource. */
import { Schema } from "effect"
import { HttpApiSchema } from "effect/http-api"
import * as Filter from "./Filter.ts"
import { integer, organization } from "./Search.ts"

export const maximumChanges = 1000

/** In seconds. */
export const longestWait = 20

const exampleCursor = "MS41YjBjOWQxZS4yZjdhNmM0MC4xLnhjLmh2MDVjLm5oLmNoYXJnZV9vYWtyaWRnZV8wMDEw919jq159"

/** Request fields of every feed of changes. */
export const changesFields = {
  cursor: Filter.optional(
    Filter.Text("The `cursor` of the response before. Without one, the changes begin with every record that there is.")
  ),
  limit: Filter.optional(
    integer("How many changes to return at most, `body` and `removed` together.", {
      minimum: 1,
      maximum: maximumChanges,
      default: maximumChanges
    })
  ),
  wait: Filter.optional(
    integer(
      "For how many seconds to wait for a change where there is none yet. When too many requests wait already, at most an eighth of the server's connections for one organization, the response comes at once, as if the time were over.",
      {
        minimum: 0,
        maximum: longestWait,
        default: 0
      }
    )
  ),
  organization
}

/** Response header: for how many seconds changes have been held back. */
export const lagHeader = "x-changes-lag"

/** Response header: whether the first load is complete. */
export const completeHeader = "x-changes-complete"

/** A response of a feed of changes: its body, and the headers. A client has all of it as one value. */
export const changesOf = <Fields extends Schema.Struct.Fields>(
  record: Schema.Struct<Fields>,
  annotations: { readonly identifier: string; readonly description: string }
) => {
  const body = Schema.Struct({
    body: Schema.Array(record).annotate({
      description:
        "The last committed state of records that are new or were changed: insert or replace each by its `id`."
    }),
    removed: Schema.Array(Schema.String).annotate({
      description: "The ids of records that do not exist any more: delete them. There may be some that you never had.",
      examples: [[]]
    }),
    cursor: Schema.String.annotate({
      description: "Where the next request goes on. Keep it together with what you keep of this response.",
      examples: [exampleCursor]
    }),
    has_more: Schema.Boolean.annotate({ description: "Whether there are more changes to read at once." })
  }).annotate(annotations)
  const lag = Schema.Int.annotate({ description: "For how many seconds changes have been held back." })
  const complete = Schema.Boolean
  return Schema.toType(Schema.Struct({ ...body.fields, lag, complete })).pipe(
    HttpApiSchema.encodeToWithHeaders(
      { body, headers: { [lagHeader]: lag, [completeHeader]: complete } },
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

export const changesDescription = `What has changed since the response that \`cursor\` is of; without one, every record that there is. How to keep a copy with it, and what it promises, stands under "By changes" in the introduction.

The header \`${lagHeader}\` says for how many seconds an open transaction has held changes back: 0 where none are. The header \`${completeHeader}\` is \`true\` once your first load is complete, also while changes are held back: you have every record that existed when you began without a cursor, except those changed since, which arrive as changes. 410 means that the order of changes began anew: start again without a cursor, with an empty copy.`
