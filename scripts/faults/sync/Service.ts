/** A service that is asked over HTTP, or in this process. */
import { Data, Effect, Schema } from "effect"
import { type Answer, json } from "../../../test/support/Client.ts"

/** The service did not do what it must do for anybody. */
export class Refused extends Data.TaggedError("Refused")<{ readonly message: string }> {}

/** Asks an endpoint of the data API with a key. */
export type Ask = (path: string, key: string, body: string) => Effect.Effect<Answer, Refused>

/** A record as JSON has it. */
export type Fields = Readonly<Record<string, unknown>>

const Records = Schema.Array(Schema.Record(Schema.String, Schema.Unknown))

const state = { cursor: Schema.String, has_more: Schema.Boolean }

const Changed = Schema.fromJsonString(Schema.Struct({ body: Records, removed: Schema.Array(Schema.String), ...state }))

const Item = Schema.Union([
  Schema.Struct({ resource: Schema.String, record: Schema.Record(Schema.String, Schema.Unknown) }),
  Schema.Struct({ resource: Schema.String, removed: Schema.String }),
  Schema.Struct({ resource: Schema.String, reset: Schema.Literal(true) })
])
export type Item = typeof Item.Type

const AllChanged = Schema.fromJsonString(
  Schema.Struct({ body: Schema.Array(Item), is_consistent: Schema.Boolean, schema: Schema.String, ...state })
)

const unlike = (what: string) => (answer: { readonly message: string }) =>
  new Refused({ message: `${what} is not as documented: ${answer.message}` })

const changed = Schema.decodeUnknownEffect(Changed, { onExcessProperty: "error" })
const allChanged = Schema.decodeUnknownEffect(AllChanged, { onExcessProperty: "error" })

const asked = Effect.fnUntraced(function* (ask: Ask, path: string, key: string, request: object) {
  const body = json(request)
  const answer = yield* ask(path, key, body)
  if (answer.status === 200 || answer.status === 410) return answer
  return yield* new Refused({ message: `${path} ${body}: ${answer.status} ${answer.text.slice(0, 300)}` })
})

/** A page of the changes of a resource; undefined if the cursor has expired. */
export const changes = Effect.fnUntraced(function* (ask: Ask, name: string, key: string, request: object) {
  const { headers, status, text } = yield* asked(ask, `/api/v3/${name}/changes`, key, request)
  if (status === 410) return undefined
  const { body, removed, ...page } = yield* Effect.mapError(changed(text), unlike("A page of changes"))
  const items: ReadonlyArray<Item> = [
    ...removed.map((id) => ({ resource: name, removed: id })),
    ...body.map((record) => ({ resource: name, record }))
  ]
  return { ...page, items, isConsistent: undefined, lag: Number(headers["x-changes-lag"]) }
})

/** A page of the changes of resources; undefined if the cursor has expired. */
export const allChanges = Effect.fnUntraced(function* (ask: Ask, key: string, request: object) {
  const { headers, status, text } = yield* asked(ask, "/api/v3/changes", key, request)
  if (status === 410) return undefined
  const {
    body: items,
    is_consistent: isConsistent,
    ...page
  } = yield* Effect.mapError(allChanged(text), unlike("A page of the changes of all"))
  return { ...page, items, isConsistent, lag: Number(headers["x-changes-lag"]) }
})
