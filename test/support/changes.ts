/** Readers of the feed of changes, in this process over a database. */
import { assert } from "@effect/vitest"
import { Duration, Effect, Schedule, Schema } from "effect"
import { CurrentOrganization } from "../../src/api/Authorization.ts"
import { pets } from "../../src/api/records/Pets.ts"
import type { Resource } from "../../src/api/records/Resource.ts"
import { type Database, inOrder, lockTimeout, TaskDatabase } from "../../src/database/Database.ts"
import { ChangeClock } from "../../src/changes/ChangeClock.ts"
import { type Feed, LongPolls } from "../../src/changes/Feed.ts"
import { databaseFeed } from "../../src/changes/FeedStores.ts"
import * as OrganizationReads from "../../src/database/OrganizationReads.ts"
import { searchable } from "../../src/api/records/index.ts"
import { clientOf } from "./TestDatabase.ts"
import { eventually } from "./eventually.ts"
import { toText } from "../../src/database/Columns.ts"

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
    has_more: Schema.Boolean,
    is_consistent: Schema.Boolean
  })
)
const decodePage = Schema.decodeEffect(Page)

/** A reader of the changes of an organization, by default of all resources, which keeps its cursor. */
export const readerOf = <E, R>(changes: Feed<E, R>, organization: string, resources?: ReadonlyArray<string>) => {
  const at: { cursor: string | undefined } = { cursor: undefined }
  const read = Effect.fnUntraced(function* (limit = 1000, wait = Duration.zero) {
    const { json } = yield* changes({ cursor: at.cursor, limit, wait, resources }).pipe(
      Effect.provideService(CurrentOrganization, CurrentOrganization.of({ id: organization }))
    )
    const { body, ...page } = yield* decodePage(toText(json))
    at.cursor = page.cursor
    return {
      ...page,
      items: body,
      records: body.flatMap((item) => ("record" in item ? [item.record] : [])),
      removed: body.flatMap((item) => ("removed" in item ? [item.removed] : [])),
      isReset: body.some((item) => "reset" in item)
    }
  })
  return { at, read }
}

/** A clock of the changes of a database. */
export const clockOf = (sql: Database) => Effect.provideService(ChangeClock.make, TaskDatabase, sql)

/** The feed of a database. */
const feedOver = Effect.fnUntraced(function* (sql: Database) {
  return databaseFeed(sql, OrganizationReads.make(sql), searchable, yield* LongPolls.make)
})

/** The feed of a database, whose clock has ticked. */
export const feedOf = (sql: Database) =>
  Effect.andThen(
    Effect.flatMap(clockOf(sql), ({ tick }) => tick),
    feedOver(sql)
  )

/** Waits until all that was committed before is below the horizon, which transactions in any database hold back. */
export const settled = Effect.fnUntraced(function* (sql: Database) {
  const [begun] = yield* sql<{ ceiling: number }>`select change_ceiling()::float8 as ceiling`
  const isBelow = sql`select 1 where change_horizon() >= ${begun?.ceiling ?? 0}`
  yield* eventually("the horizon", isBelow, (rows) => rows.length > 0)
})

/** The organization of followers. */
export const organization = "org_copy"

/** The statement that writes a pet. */
export const put = (id: string, name = "name") =>
  `insert into pets (organization_id, id, name) values ('${organization}', '${id}', '${name}')
    on conflict (organization_id, id) do update set name = excluded.name`

/** The reads of a service over a database, in this process, which looks at the order once a second. */
export const service = Effect.fnUntraced(function* ({ url }: { readonly url: string }) {
  const settings = { ...inOrder, ...lockTimeout }
  const sql = yield* clientOf(url, { maxConnections: 4, statementTimeout: "5 seconds", settings })
  const clock = yield* clockOf(sql)
  yield* Effect.forkScoped(clock.watch)
  return { clock, changes: yield* feedOver(sql) }
})

export type Service = Effect.Success<ReturnType<typeof service>>

/** A reader that keeps a copy of a resource in step. On 410 or a reset it starts again, with an empty copy. */
export const follower = (first: Service, resource: Resource = pets) => {
  let from = first
  const { at, read } = readerOf((request) => from.changes(request), organization, [resource.name])
  const copy = new Map<string, StoredRecord>()
  let gone = 0
  /** Reads a page, once the database is up, and applies it. True if there are more. */
  const step = Effect.fnUntraced(function* (limit = 1000) {
    const page = yield* read(limit).pipe(
      Effect.retry({ while: ({ _tag }) => _tag === "RecordStoreDown", schedule: Schedule.spaced("20 millis") }),
      Effect.catchTag("CursorExpired", () => Effect.undefined)
    )
    if (page === undefined || page.isReset) {
      copy.clear()
      gone += 1
    }
    if (page === undefined) {
      assert.isDefined(at.cursor, "A reader without a cursor has none that is gone")
      at.cursor = undefined
      return true
    }
    assert.isAtMost(page.records.length + page.removed.length, limit)
    for (const record of page.records) copy.set(record.id, record)
    for (const id of page.removed) copy.delete(id)
    return page.has_more
  })
  /** Reads until there is no more. */
  const drain = (limit?: number) => Effect.repeat(step(limit), { while: (hasMore) => hasMore })
  /** Reads to the end, and holds that the copy is the table, and that it has started again so many times in all. */
  const isEqual = Effect.fnUntraced(function* (
    sql: Database,
    { gone: times = 0, limit }: { readonly gone?: number; readonly limit?: number } = {}
  ) {
    yield* drain(limit)
    const rows = yield* sql<{ record: string }>`
      select record from ${sql.literal(resource.table)} where organization_id = ${organization}`
    const records = yield* Effect.forEach(rows, ({ record }) => decodeRecord(record))
    assert.deepStrictEqual(Object.fromEntries(copy), Object.fromEntries(records.map((record) => [record.id, record])))
    assert.strictEqual(gone, times)
  })
  /** Reads from another service. */
  const move = (to: Service) => Effect.sync(() => void (from = to))
  return { step, drain, isEqual, move, copy, gone: () => gone }
}

export type Follower = ReturnType<typeof follower>
