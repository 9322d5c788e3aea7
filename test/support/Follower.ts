/** Readers that keep a copy in step by a feed of changes, and the services that they ask. */
import { assert } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import { Reactivity } from "effect/reactivity"
import {
  type CredentialStoreDown,
  type ChangesNotServed,
  CursorExpired,
  type CursorInvalid,
  RecordStoreDown,
  type Unauthorized
} from "../../src/api/Errors.ts"
import { CurrentOrganization } from "../../src/api/CurrentOrganization.ts"
import { pets } from "../../src/api/records/Pets.ts"
import type { Resource } from "../../src/api/records/Resource.ts"
import { connect, type Database, inOrder, lockTimeout } from "../../src/database/Database.ts"
import * as ChangeClock from "../../src/records/ChangeClock.ts"
import * as Postgres from "../../src/records/Postgres.ts"
import type { Changes, ChangesRequest } from "../../src/records/Repository.ts"
import * as Client from "./Client.ts"
import { eventually } from "./eventually.ts"
import * as Pages from "../../src/records/Pages.ts"

export const organization = "org_copy"

/** The statement that writes a pet. */
export const put = (id: string, name = "name") =>
  `insert into pets (organization_id, id, name) values ('${organization}', '${id}', '${name}')
    on conflict (organization_id, id) do update set name = excluded.name`

const StoredRecord = Schema.StructWithRest(Schema.Struct({ id: Schema.String }), [
  Schema.Record(Schema.String, Schema.Json)
])
type StoredRecord = typeof StoredRecord.Type

const decodeRecord = Schema.decodeEffect(Schema.fromJsonString(StoredRecord))

const Page = Schema.fromJsonString(
  Schema.Struct({
    body: Schema.Array(StoredRecord),
    removed: Schema.Array(Schema.String),
    cursor: Schema.String,
    has_more: Schema.Boolean
  })
)
const decodePage = Schema.decodeEffect(Page)

const pool = (url: string) =>
  connect({
    url: Redacted.make(url),
    applicationName: "practice-data-records",
    maxConnections: 4,
    statementTimeout: "5 seconds",
    settings: { ...inOrder, ...lockTimeout }
  })

interface Urls {
  readonly url: string
}

/**
 * The reads of a service over databases, in this process.
 *
 * @param primary the one of DATABASE_URL
 * @param replica the one of READ_DATABASE_URL
 * @param isWatched whether it looks at the order once a second, as a process does
 */
export const service = Effect.fnUntraced(function* (primary: Urls, replica: Urls = primary, isWatched = true) {
  const tasks = yield* pool(primary.url)
  const records = yield* pool(replica.url)
  const clock = ChangeClock.make(tasks, records)
  if (isWatched) yield* Effect.forkScoped(clock.watch)
  const changesOf = (resource: Resource) => Postgres.make(records, resource, { clock }).changes
  return { clock, changesOf }
}, Effect.provide(Reactivity.layer))

export type Service = Effect.Success<ReturnType<typeof service>>

/** Where changes are read from. */
interface Source {
  readonly changesOf: (
    resource: Resource
  ) => (
    request: ChangesRequest
  ) => Effect.Effect<
    Pick<Changes, "json" | "lag">,
    CursorExpired | ChangesNotServed | RecordStoreDown | CursorInvalid | CredentialStoreDown | Unauthorized,
    CurrentOrganization
  >
}

/** The reads of a program of its own, over HTTP. One that does not answer is one that is down. */
export const overHttp = (client: Client.Client, key: Redacted.Redacted): Source => ({
  changesOf: ({ name }) =>
    Effect.fnUntraced(function* (request) {
      const { headers, status, text } = yield* client
        .call({
          path: `/api/v3/${name}/changes`,
          headers: { authorization: `Bearer ${Redacted.value(key)}`, "content-type": "application/json" },
          body: Client.json(request)
        })
        .pipe(Effect.catchTag("NoAnswer", () => new RecordStoreDown()))
      if (status === 410) return yield* new CursorExpired()
      if (status === 503) return yield* new RecordStoreDown()
      assert.strictEqual(status, 200, text)
      return { json: Pages.fromText(text), lag: Number(headers["x-changes-lag"]) }
    })
})

/** What a reader has: to be killed and to go on from, it is all that is needed. */
export interface State {
  readonly copy: ReadonlyMap<string, StoredRecord>
  readonly cursor: string | undefined
}

/** What a step of a reader came to. */
export type Step =
  | { readonly _tag: "Page"; readonly hasMore: boolean; readonly lag: number }
  | { readonly _tag: "Gone" | "Unavailable" }

/** A reader at its beginning. */
export const make = (resource: Resource = pets, limit = 1000, owner = organization) => {
  let state: State = { copy: new Map(), cursor: undefined }
  let gone = 0

  /** Asks a service for a page, and applies it. On 410 it begins anew, with an empty copy. */
  const step = Effect.fnUntraced(function* (
    from: Source,
    most = limit
  ): Effect.fn.Return<
    Step,
    CursorInvalid | ChangesNotServed | CredentialStoreDown | Schema.SchemaError | Unauthorized
  > {
    const asked = from
      .changesOf(resource)({ cursor: state.cursor, limit: most })
      .pipe(
        Effect.provideService(CurrentOrganization, CurrentOrganization.known(owner)),
        Effect.catchTag(["CursorExpired", "RecordStoreDown"], ({ _tag }) => Effect.succeed(_tag))
      )
    const answer = yield* asked
    if (answer === "RecordStoreDown") return { _tag: "Unavailable" }
    if (answer === "CursorExpired") {
      assert.isDefined(state.cursor, "A reader without a cursor has none that is gone")
      gone += 1
      state = { copy: new Map(), cursor: undefined }
      return { _tag: "Gone" }
    }
    const page = yield* decodePage(Pages.toText(answer.json))
    assert.isAtMost(page.body.length + page.removed.length, most)
    const copy = new Map(state.copy)
    for (const record of page.body) copy.set(record.id, record)
    for (const id of page.removed) copy.delete(id)
    state = { copy, cursor: page.cursor }
    return { _tag: "Page", hasMore: page.has_more, lag: answer.lag }
  })

  /** Reads on until there is no more; how often it had to begin anew. */
  const drain = Effect.fnUntraced(function* (from: Source, most = limit) {
    const before = gone
    let last: Step
    do {
      last = yield* step(from, most)
      if (last._tag === "Unavailable") yield* Effect.sleep(20)
    } while (last._tag !== "Page" || last.hasMore)
    return { gone: gone - before, lag: last.lag }
  })

  return {
    resource,
    owner,
    step,
    drain,
    state: () => state,
    /** Goes on from what was kept. */
    restore: (kept: State) => void (state = kept),
    gone: () => gone
  }
}

export type Follower = ReturnType<typeof make>

/** Holds that a reader who has read to the end has exactly what the table has. */
export const assertEqual = Effect.fnUntraced(function* (follower: Follower, sql: Database, message?: string) {
  const rows = yield* sql<{ record: string }>`
    select record from ${sql.literal(follower.resource.table)} where organization_id = ${follower.owner}`
  const records = yield* Effect.forEach(rows, ({ record }) => decodeRecord(record))
  const expected = Object.fromEntries(records.map((record) => [record.id, record]))
  assert.deepStrictEqual(Object.fromEntries(follower.state().copy), expected, message)
})

/** Reads until nothing is held back. */
export const settled = (follower: Follower, from: Source) =>
  eventually(
    "a feed that holds nothing back",
    Effect.map(follower.drain(from), ({ lag }) => lag === 0)
  )
