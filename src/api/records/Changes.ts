/** The request and the response of the endpoints that tell the changes of a resource. */
import { Schema } from "effect"
import * as Filter from "./Filter.ts"
import { integer, organization } from "./Search.ts"

export const maximumChanges = 1000

/** In seconds. */
export const longestWait = 20

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
    integer("For how many seconds to wait for a change where there is none yet.", {
      minimum: 0,
      maximum: longestWait,
      default: 0
    })
  ),
  organization
}

/** Response header: for how many seconds changes have been held back. */
export const lagHeader = "x-changes-lag"

/** A response of a feed of changes. */
export const changesOf = <S extends Schema.Constraint>(record: S) =>
  Schema.Struct({
    body: Schema.Array(record).annotate({
      description:
        "The last committed state of records that are new or were changed: insert or replace each by its `id`."
    }),
    removed: Schema.Array(Schema.String).annotate({
      description: "The ids of records that do not exist any more: delete them. There may be some that you never had."
    }),
    cursor: Schema.String.annotate({
      description: "Where the next request goes on. Keep it together with what you keep of this response."
    }),
    has_more: Schema.Boolean.annotate({ description: "Whether there are more changes to read at once." })
  })

export const changesDescription = `Keeps a copy in step. Apply \`body\` and \`removed\`, keep \`cursor\`, and ask again with it: at once while \`has_more\` is true, then as often as you like. Whenever \`has_more\` is false and \`${lagHeader}\` is 0, your copy is the last committed state of every record, whatever was written, in which order and with which times.

A record may come again, never an older state after a newer one. Records that are marked as deleted come in \`body\`; the ids of those that are gone come in \`removed\`. A transaction that has written and is still open holds back what was committed after it: the header \`${lagHeader}\` says for how many seconds.

410 means that the order of changes began anew: start again without a cursor, with an empty copy.`
