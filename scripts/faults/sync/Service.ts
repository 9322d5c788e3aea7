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

const state = { cursor: Schema.String, has_more: Schema.Boolean }

/** Reads pages, and refuses those that are not as documented; undefined if the cursor has expired. */
const pagesOf = <A extends object>(schema: Schema.Codec<A, unknown>) => {
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(schema), { onExcessProperty: "error" })
  return Effect.fnUntraced(function* (ask: Ask, path: string, key: string, request: object) {
    const body = json(request)
    const { headers, status, text } = yield* ask(path, key, body)
    if (status === 410) return undefined
    const refuse = (reason: string) => new Refused({ message: `${path} ${body}: ${status} ${reason}` })
    if (status !== 200) return yield* refuse(text.slice(0, 300))
    const page = yield* Effect.mapError(decode(text), ({ message }) => refuse(message))
    return { ...page, lag: Number(headers["x-changes-lag"]) }
  })
}

const changed = pagesOf(
  Schema.Struct({
    body: Schema.Array(Schema.Record(Schema.String, Schema.Unknown)),
    removed: Schema.Array(Schema.String),
    ...state
  })
)

/** A page of the changes of a resource; undefined if the cursor has expired. */
export const changes = Effect.fnUntraced(function* (ask: Ask, resource: string, key: string, request: object) {
  const page = yield* changed(ask, `/api/v3/${resource}/changes`, key, request)
  if (page === undefined) return undefined
  const items: ReadonlyArray<Item> = [
    ...page.removed.map((removed) => ({ resource, removed })),
    ...page.body.map((record) => ({ resource, record }))
  ]
  return { ...page, items, isConsistent: undefined }
})

const allChanged = pagesOf(
  Schema.Struct({ body: Schema.Array(Item), is_consistent: Schema.Boolean, schema: Schema.String, ...state })
)

/** A page of the changes of resources; undefined if the cursor has expired. */
export const allChanges = (ask: Ask, key: string, request: object) =>
  Effect.map(
    allChanged(ask, "/api/v3/changes", key, request),
    (page) => page && { ...page, items: page.body, isConsistent: page.is_consistent }
  )
