/**
 * Whether the tables of a database are distributed over several servers, which the extension Citus does. The database is
 * asked while the service runs, since it may be down at the start, and may be distributed at any time.
 *
 * Statements for a distributed database are right on any other too, and slower there. So they are what is used until the
 * database has answered.
 */
import { Clock, Duration, Effect, References } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Constructor } from "effect/sql/Statement"
import { type Store, unaccounted } from "./Store.ts"

export interface Distribution {
  /** Whether the tables are distributed; undefined until the database has said so. Costs nothing. */
  readonly isDistributed: () => boolean | undefined
  /** Asks the database, unless it answered a while ago. One that does not answer leaves what is known as it is. */
  readonly refresh: Effect.Effect<void>
}

/** That of a database that can be no other. */
const fixed = (isDistributed: boolean): Distribution => ({ isDistributed: () => isDistributed, refresh: Effect.void })

/** All tables are on one server. */
export const single = fixed(false)

/** The tables are distributed by organization. */
export const distributed = fixed(true)

/** For how long an answer is good, in milliseconds: so late is it noticed that a database was distributed. */
const fresh = Duration.toMillis("10 seconds")

const within = Duration.seconds(2)

/** Which tables are distributed. Only a database that has the extension has its catalog. */
const tables = Effect.fnUntraced(function* (sql: Constructor): Effect.fn.Return<ReadonlyArray<string>, SqlError> {
  const [catalog] = yield* sql<{ exists: boolean }>`select to_regclass('pg_dist_partition') is not null as exists`
  if (catalog?.exists !== true) return []
  // Reference tables are of the method n.
  const rows = yield* sql<{ name: string }>`
    select c.relname as name from pg_dist_partition p join pg_class c on c.oid = p.logicalrelid
    where c.relnamespace = current_schema()::regnamespace and p.partmethod = 'h'`
  return rows.map(({ name }) => name)
})

/** Whether any table is distributed. */
export const ask = (sql: Constructor): Effect.Effect<boolean, SqlError> =>
  Effect.map(tables(sql), (names) => names.length > 0)

/** Whether a table is distributed. */
export const has = (sql: Constructor, table: string): Effect.Effect<boolean, SqlError> =>
  Effect.map(tables(sql), (names) => names.includes(table))

/** That of a database, as it says. */
export const make = (sql: Constructor, { run }: Store): Distribution => {
  let isDistributed: boolean | undefined
  let askedAt = Number.NEGATIVE_INFINITY
  const refresh = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    if (Math.abs(now - askedAt) < fresh) return
    askedAt = now
    const answer = yield* Effect.option(
      run({ key: "the distribution", within, unavailable: () => "no answer" as const }, ask(sql))
    )
    if (answer._tag === "Some") isDistributed = answer.value
    // Whoever needs it asks again soon.
    else askedAt = Number.NEGATIVE_INFINITY
  }).pipe(unaccounted, Effect.provideService(References.TracerEnabled, false))
  return { isDistributed: () => isDistributed, refresh }
}
