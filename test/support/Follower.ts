/** Readers that keep a copy of a resource in step by the feed of changes, and the services that they ask. */
import { assert } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { CurrentOrganization } from "../../src/api/Authorization.ts"
import { pets } from "../../src/api/records/Pets.ts"
import type { Resource } from "../../src/api/records/Resource.ts"
import { type Database, inOrder, lockTimeout, TaskDatabase } from "../../src/database/Database.ts"
import { ChangeClock } from "../../src/changes/ChangeClock.ts"
import { databaseFeed } from "../../src/changes/FeedStores.ts"
import * as OrganizationReads from "../../src/database/OrganizationReads.ts"
import { LongPolls } from "../../src/changes/LongPolls.ts"
import { searchable } from "../../src/api/records/index.ts"
import { clientOf } from "./TestDatabase.ts"
import { toText } from "../../src/database/Columns.ts"

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
    body: Schema.Array(
      Schema.Union([
        Schema.Struct({ resource: Schema.String, record: StoredRecord }),
        Schema.Struct({ resource: Schema.String, removed: Schema.String }),
        Schema.Struct({ resource: Schema.String, reset: Schema.Literal(true) })
      ])
    ),
    cursor: Schema.String,
    has_more: Schema.Boolean
  })
)
const decodePage = Schema.decodeEffect(Page)

/** A page of the feed of one resource. */
export const pageOf = (json: Uint8Array) =>
  Effect.map(decodePage(toText(json)), ({ body, ...page }) => ({
    ...page,
    body: body.flatMap((item) => ("record" in item ? [item.record] : [])),
    removed: body.flatMap((item) => ("removed" in item ? [item.removed] : [])),
    isReset: body.some((item) => "reset" in item)
  }))

const pool = (url: string) =>
  clientOf(url, { maxConnections: 4, statementTimeout: "5 seconds", settings: { ...inOrder, ...lockTimeout } })

/** A clock of the changes of a database. */
export const clockOf = (sql: Database) => Effect.provideService(ChangeClock.make, TaskDatabase, sql)

/** The feed of a database, whose clock has ticked. */
export const feedOf = Effect.fnUntraced(function* (sql: Database) {
  yield* Effect.flatMap(clockOf(sql), ({ tick }) => tick)
  return databaseFeed(sql, OrganizationReads.make(sql), searchable, yield* LongPolls.make)
})

interface Urls {
  readonly url: string
}

/**
 * The reads of a service over a database, in this process.
 *
 * @param isWatched whether it looks at the order once a second, as a process does
 */
export const service = Effect.fnUntraced(function* ({ url }: Urls, isWatched = true) {
  const sql = yield* pool(url)
  const clock = yield* clockOf(sql)
  if (isWatched) yield* Effect.forkScoped(clock.watch)
  return { clock, changes: databaseFeed(sql, OrganizationReads.make(sql), searchable, yield* LongPolls.make) }
})

export type Service = Effect.Success<ReturnType<typeof service>>

/** A reader at its beginning. */
export const make = (resource: Resource = pets) => {
  let copy: ReadonlyMap<string, StoredRecord> = new Map()
  let cursor: string | undefined
  let gone = 0
  /** Reads a page, and applies it. True if there are more. On 410 or a reset it starts again, with an empty copy. */
  const step = Effect.fnUntraced(function* ({ changes }: Service, limit = 1000) {
    const answer = yield* changes({ cursor, limit, resources: [resource.name] }).pipe(
      Effect.provideService(CurrentOrganization, CurrentOrganization.of({ id: organization })),
      Effect.catchTag(["CursorExpired", "RecordStoreDown"], ({ _tag }) => Effect.succeed(_tag))
    )
    if (answer === "RecordStoreDown") {
      yield* Effect.sleep(20)
      return true
    }
    if (answer === "CursorExpired") {
      assert.isDefined(cursor, "A reader without a cursor has none that is gone")
      gone += 1
      copy = new Map()
      cursor = undefined
      return true
    }
    const page = yield* pageOf(answer.json)
    assert.isAtMost(page.body.length + page.removed.length, limit)
    if (page.isReset) gone += 1
    const next = new Map(page.isReset ? [] : copy)
    for (const record of page.body) next.set(record.id, record)
    for (const id of page.removed) next.delete(id)
    copy = next
    cursor = page.cursor
    return page.has_more
  })
  return {
    resource,
    step,
    /** Reads on until there is no more. */
    drain: (from: Service, limit?: number) => Effect.repeat(step(from, limit), { while: (hasMore) => hasMore }),
    copy: () => copy,
    /** How often it has started again. */
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
