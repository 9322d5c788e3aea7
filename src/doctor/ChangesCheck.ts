/** Checks the order of changes, and what holds it back. */
import { Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { PgClient } from "@effect/sql-pg"
import * as Distribution from "../database/Distribution.ts"
import { invocation } from "../process/Invocation.ts"
import { fail, listed, ok, type Said, warn } from "./Finding.ts"

interface Feed {
  readonly name: string
  readonly is_whole: boolean
  readonly is_settled: boolean
}

interface Holder {
  readonly holder: string
  readonly age: number
}

/** How long a transaction may hold changes back, in seconds. */
const longest = 60

const names = (some: ReadonlyArray<Feed>) => listed(some.map(({ name }) => name))

const feeds = Effect.fnUntraced(function* (sql: PgClient.PgClient): Effect.fn.Return<ReadonlyArray<Said>, SqlError> {
  const found = yield* sql<Feed>`
    select table_name as name, is_whole, is_settled from change_feed_states() order by table_name`
  const broken = found.filter(({ is_whole }) => !is_whole)
  const unsettled = found.filter((feed) => feed.is_whole && !feed.is_settled)
  return [
    ...(broken.length === 0
      ? []
      : [
          fail(
            `Changes of ${names(broken)} cannot be told: a trigger or the index for changes is missing.`,
            "Restore the triggers and the index as well, as the migrations make them."
          )
        ]),
    ...(unsettled.length === 0
      ? []
      : [
          warn(
            `The order of changes of ${names(unsettled)} has to begin anew: triggers were disabled, or the table was restored. Its readers get 410 and start again.`,
            `A running service does it within a second. Or run: ${invocation("migrate")}`
          )
        ]),
    ...(broken.length + unsettled.length === 0 ? [ok("The order of changes is whole.")] : [])
  ]
})

const holders = (sql: PgClient.PgClient) =>
  Effect.map(
    sql<Holder>`
      select 'The transaction of process ' || pid || coalesce(' (' || usename || ', ' || datname || ')', '') as holder,
        extract(epoch from now() - xact_start)::float8 as age
      from pg_stat_activity where backend_xid is not null and pid <> pg_backend_pid()
      union all
      select 'The prepared transaction ' || gid, extract(epoch from now() - prepared)::float8 from pg_prepared_xacts
      order by age desc nulls last limit 1`,
    ([oldest]): ReadonlyArray<Said> =>
      oldest === undefined || oldest.age < longest
        ? []
        : [
            warn(
              `${oldest.holder} has been open for ${Math.round(oldest.age)} seconds, and holds back the changes of all records.`,
              oldest.holder.startsWith("The prepared")
                ? "Commit it or roll it back: commit prepared, rollback prepared."
                : "End it, load in smaller parts, and set idle_in_transaction_session_timeout."
            )
          ]
  )

/** The changes. */
export const check = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  if (yield* Distribution.ask(sql)) {
    return [ok("Changes are not served (501), since the tables are distributed over several servers.")]
  }
  return [...(yield* feeds(sql)), ...(yield* holders(sql))]
})
