/** Readers that keep a copy in step by a feed of changes, and the services that they ask. */
import { assert } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import { Reactivity } from "effect/reactivity"
import { CurrentOrganization } from "../../../src/api/CurrentOrganization.ts"
import { pets } from "../../../src/api/records/Pets.ts"
import type { Resource } from "../../../src/api/records/Resource.ts"
import { connect, type Database, inOrder, lockTimeout } from "../../../src/database/Database.ts"
import * as ChangeClock from "../../../src/records/ChangeClock.ts"
import * as Postgres from "../../../src/records/Postgres.ts"
import { eventually } from "../../blackbox/support/eventually.ts"

export const organization = "org_copy"

const Page = Schema.fromJsonString(
  Schema.Struct({
    body: Schema.Array(
      Schema.StructWithRest(Schema.Struct({ id: Schema.String }), [Schema.Record(Schema.String, Schema.Json)])
    ),
    removed: Schema.Array(Schema.String),
    cursor: Schema.String,
    has_more: Schema.Boolean
  })
)
const decodePage = Schema.decodeEffect(Page)

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
  const pool = (url: string) =>
    connect({
      url: Redacted.make(url),
      applicationName: "practice-data-records",
      maxConnections: 4,
      statementTimeout: "5 seconds",
      settings: { ...inOrder, ...lockTimeout }
    })
  const tasks = yield* pool(primary.url)
  const records = yield* pool(replica.url)
  const clock = ChangeClock.make(tasks, records)
  if (isWatched) yield* Effect.forkScoped(clock.watch)
  const changesOf = (resource: Resource) => Postgres.make(records, resource, { clock }).changes
  return { clock, changesOf }
}, Effect.provide(Reactivity.layer))

export type Service = Effect.Success<ReturnType<typeof service>>

/** What a reader has: to be killed and to go on from, it is all that is needed. */
export interface State {
  readonly copy: ReadonlyMap<string, string>
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
  const step = Effect.fnUntraced(function* (from: Service, most = limit): Effect.fn.Return<Step, unknown> {
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
    const page = yield* decodePage(answer.json)
    assert.isAtMost(page.body.length + page.removed.length, most)
    const copy = new Map(state.copy)
    for (const record of page.body) copy.set(record.id, JSON.stringify(record))
    for (const id of page.removed) copy.delete(id)
    state = { copy, cursor: page.cursor }
    return { _tag: "Page", hasMore: page.has_more, lag: answer.lag }
  })

  /** Reads on until there is no more; how often it had to begin anew. */
  const drain = Effect.fnUntraced(function* (from: Service, most = limit) {
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

/** The records of a table, as a copy has them. */
export const recordsIn = (sql: Database, { owner, resource }: Follower) =>
  Effect.map(
    sql<{ id: string; record: string }>`
      select id, record from ${sql.literal(resource.table)} where organization_id = ${owner} order by id`,
    (rows) => new Map(rows.map(({ id, record }) => [id, JSON.stringify(JSON.parse(record))]))
  )

/** Holds that a reader who has read to the end has exactly what the table has. */
export const assertEqual = Effect.fnUntraced(function* (follower: Follower, sql: Database, message?: string) {
  const expected = yield* recordsIn(sql, follower)
  const sorted = new Map([...follower.state().copy].sort(([one], [another]) => (one < another ? -1 : 1)))
  assert.deepStrictEqual(Object.fromEntries(sorted), Object.fromEntries(expected), message)
})

/** Reads until nothing is held back. */
export const settled = (follower: Follower, from: Service) =>
  eventually(
    "a feed that holds nothing back",
    Effect.map(follower.drain(from), ({ lag }) => lag === 0)
  )
