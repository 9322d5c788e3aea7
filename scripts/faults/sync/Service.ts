/** A service that is asked over HTTP, or in this process. */
import { Data, Effect, Schema } from "effect"
import { type Answer, json } from "../../../test/support/Client.ts"

/** The service did not do what it must do for anybody. */
export class Refused extends Data.TaggedError("Refused")<{ readonly message: string }> {}

/** Asks an endpoint of the data API with a key. */
export type Ask = (path: string, key: string, body: string) => Effect.Effect<Answer, Refused>

const Item = Schema.Union([
  Schema.Struct({ resource: Schema.String, record: Schema.Record(Schema.String, Schema.Unknown) }),
  Schema.Struct({ resource: Schema.String, removed: Schema.String }),
  Schema.Struct({ resource: Schema.String, reset: Schema.Literal(true) })
])
export type Item = typeof Item.Type

const Page = Schema.fromJsonString(
  Schema.Struct({
    body: Schema.Array(Item),
    cursor: Schema.String,
    has_more: Schema.Boolean,
    is_consistent: Schema.Boolean,
    schema: Schema.String
  })
)
const decode = Schema.decodeUnknownEffect(Page, { onExcessProperty: "error" })

/** A page of the changes of resources, refused if it is not as documented; undefined if the cursor has expired. */
export const changes = Effect.fnUntraced(function* (ask: Ask, key: string, request: object) {
  const path = "/api/v3/changes"
  const body = json(request)
  const { status, text } = yield* ask(path, key, body)
  if (status === 410) return undefined
  const refuse = (reason: string) => new Refused({ message: `${path} ${body}: ${status} ${reason}` })
  if (status !== 200) return yield* refuse(text.slice(0, 300))
  return yield* Effect.mapError(decode(text), ({ message }) => refuse(message))
})
