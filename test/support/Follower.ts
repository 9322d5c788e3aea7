/** Readers that keep a copy in step by a feed of changes, and the services that they ask. */
import { assert } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { CurrentOrganization } from "../../src/api/Authorization.ts"
import { pets } from "../../src/api/records/Pets.ts"
import type { Resource } from "../../src/api/records/Resource.ts"
import { type Database, inOrder, lockTimeout, RecordDatabase, TaskDatabase } from "../../src/database/Database.ts"
import { ChangeClock } from "../../src/changes/ChangeClock.ts"
import * as Records from "../../src/records/Repository.ts"
import { clientOf } from "./TestDatabase.ts"
import { eventually } from "./eventually.ts"
import { toText } from "../../src/database/RecordJson.ts"

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

/** A page of a feed of one resource. */
export const pageOf = (json: Uint8Array) => decodePage(toText(json))

const pool = (url: string) =>
  clientOf(url, { maxConnections: 4, statementTimeout: "5 seconds", settings: { ...inOrder, ...lockTimeout } })

/** A clock of the changes of databases. */
export const clockOf = (tasks: Database, records = tasks) =>
  ChangeClock.make.pipe(Effect.provideService(TaskDatabase, tasks), Effect.provideService(RecordDatabase, records))

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
  const clock = yield* clockOf(tasks, records)
  if (isWatched) yield* Effect.forkScoped(clock.watch)
  const changesOf = (resource: Resource) => Records.make(records, resource, clock).changes
  return { clock, changesOf }
})

export type Service = Effect.Success<ReturnType<typeof service>>

/** A reader at its beginning. */
export const make = (resource: Resource = pets) => {
  let copy: ReadonlyMap<string, StoredRecord> = new Map()
  let cursor: string | undefined
  let gone = 0
  /** Reads a page, and applies it. True if there are more. On 410 it starts again, with an empty copy. */
  const step = Effect.fnUntraced(function* ({ changesOf }: Service, limit = 1000) {
    const answer = yield* changesOf(resource)({ cursor, limit }).pipe(
      Effect.provideService(CurrentOrganization, CurrentOrganization.of({ id: organization })),
      Effect.catchTag(["CursorExpired", "RecordStoreDown"], ({ _tag }) => Effect.succeed(_tag))
    )
    if (answer === "RecordStoreDown") {
      yield* Effect.sleep(20)
      return { hasMore: true, lag: 0 }
    }
    if (answer === "CursorExpired") {
      assert.isDefined(cursor, "A reader without a cursor has none that is gone")
      gone += 1
      copy = new Map()
      cursor = undefined
      return { hasMore: true, lag: 0 }
    }
    const page = yield* pageOf(answer.json)
    assert.isAtMost(page.body.length + page.removed.length, limit)
    const next = new Map(copy)
    for (const record of page.body) next.set(record.id, record)
    for (const id of page.removed) next.delete(id)
    copy = next
    cursor = page.cursor
    return { hasMore: page.has_more, lag: answer.lag }
  })
  return {
    resource,
    step,
    /** Reads on until there is no more. */
    drain: (from: Service, limit?: number) => Effect.repeat(step(from, limit), { while: ({ hasMore }) => hasMore }),
    copy: () => copy,
    /** How often it began anew. */
    gone: () => gone
  }
}

export type Follower = ReturnType<typeof make>

/** Holds that a reader who has read to the end has exactly what the table has. */
export const assertEqual = Effect.fnUntraced(function* (follower: Follower, sql: Database) {
  const rows = yield* sql<{ record: string }>`
    select record from ${sql.literal(follower.resource.table)} where organization_id = ${organization}`
  const records = yield* Effect.forEach(rows, ({ record }) => decodeRecord(record))
  const expected = Object.fromEntries(records.map((record) => [record.id, record]))
  assert.deepStrictEqual(Object.fromEntries(follower.copy()), expected)
})

/** Reads to the end, and holds that the reader then has what the table has, and has begun anew so many times in all. */
export const goesOn = Effect.fnUntraced(function* (
  follower: Follower,
  from: Service,
  sql: Database,
  { gone = 0, limit }: { readonly gone?: number; readonly limit?: number } = {}
) {
  yield* follower.drain(from, limit)
  yield* assertEqual(follower, sql)
  assert.strictEqual(follower.gone(), gone)
})

/** Reads until nothing is held back. */
export const settled = (follower: Follower, from: Service) =>
  eventually("a feed that holds nothing back", follower.drain(from), ({ lag }) => lag === 0)
