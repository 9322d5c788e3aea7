/** Checks the order of changes, and what holds it back. */
import { Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { PgClient } from "@effect/sql-pg"
import * as Distribution from "../../database/Distribution.ts"
import { invocation } from "../../process/Package.ts"
import { listed, ok, type Said, warn } from "./Finding.ts"

interface Holder {
  readonly holder: string
  /** Null where the login may not see it. */
  readonly age: number | null
  readonly login: string
}

/** How long a transaction may hold changes back, in seconds. */
const longest = 60

const feeds = Effect.fnUntraced(function* (sql: PgClient.PgClient): Effect.fn.Return<ReadonlyArray<Said>, SqlError> {
  const unsettled = yield* sql<{ name: string }>`
    select table_name as name from change_feed_states() where is_whole and not is_settled order by table_name`
  if (unsettled.length === 0) return [ok("The order of changes is whole.")]
  const names = listed(unsettled.map(({ name }) => name))
  return [
    warn(
      `The order of changes of ${names} has to begin anew: triggers were disabled, or the table was restored. Its readers get 410 and start again.`,
      `A running service does it within a second. Or run: ${invocation("migrate")}`
    )
  ]
})

const holders = (sql: PgClient.PgClient) =>
  Effect.map(
    sql<Holder>`
      select 'The transaction of process ' || pid || coalesce(' (' || usename || ', ' || datname || ')', '') as holder,
        extract(epoch from now() - xact_start)::float8 as age, quote_ident(current_user) as login
      from pg_stat_activity where backend_xid is not null and pid <> pg_backend_pid()
      union all
      select 'The prepared transaction ' || gid, extract(epoch from now() - prepared)::float8, '' from pg_prepared_xacts
      order by age desc nulls first`,
    (found): ReadonlyArray<Said> => {
      const hidden = found.filter(({ age }) => age === null)
      const oldest = found[hidden.length]
      return [
        ...(hidden[0] === undefined
          ? []
          : [
              warn(
                `Transactions of other logins hold back the changes of all records (${hidden.length} now). This login cannot see since when.`,
                `grant pg_read_all_stats to ${hidden[0].login}`
              )
            ]),
        ...(oldest === undefined || oldest.age === null || oldest.age < longest
          ? []
          : [
              warn(
                `${oldest.holder} has been open for ${Math.round(oldest.age)} seconds, and holds back the changes of all records.`,
                oldest.holder.startsWith("The prepared")
                  ? "Commit it or roll it back: commit prepared, rollback prepared."
                  : "End it, load in smaller parts, and set idle_in_transaction_session_timeout."
              )
            ])
      ]
    }
  )

/** The changes. */
export const check = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  if (yield* Distribution.ask(sql)) {
    return [ok("Changes are not served (501), since the tables are distributed over several servers.")]
  }
  return [...(yield* feeds(sql)), ...(yield* holders(sql))]
})
