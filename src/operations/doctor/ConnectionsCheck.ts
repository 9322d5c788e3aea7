/** Checks that the server has room for the connections of the service. */
import { Effect } from "effect"
import type { PgClient } from "@effect/sql-pg"
import { fail, ok, warn } from "./Finding.ts"

interface Room {
  readonly login: string
  readonly most: number
  readonly kept: number
  readonly used: number
  readonly own: number
  readonly of_login: number
  readonly of_database: number
}

/**
 * The connections.
 *
 * @param needed how many the processes of this configuration open at most
 */
export const check = Effect.fnUntraced(function* (sql: PgClient.PgClient, needed: number) {
  const [room] = yield* sql<Room>`
    select current_user as login, current_setting('max_connections')::int as most,
      current_setting('superuser_reserved_connections')::int
        + coalesce(current_setting('reserved_connections', true), '0')::int as kept,
      (select coalesce(sum(numbackends), 0) from pg_stat_database)::int as used,
      (select count(*) from pg_stat_activity
        where application_name in ('practice-data-records', 'practice-data-credentials', 'practice-data-tasks')
          and datname = current_database() and pid <> pg_backend_pid())::int as own,
      (select rolconnlimit from pg_roles where rolname = current_user) as of_login,
      (select datconnlimit from pg_database where datname = current_database()) as of_database`
  if (room === undefined) return []
  const { kept, login, most, of_database, of_login, own, used } = room
  const all = most - kept
  const free = Math.max(0, all - used)
  const limits = [
    ...(of_login >= 0 && of_login < needed ? [`the login ${login} may open ${of_login}`] : []),
    ...(of_database >= 0 && of_database < needed ? [`the database takes ${of_database}`] : []),
    ...(all < needed ? [`the server takes ${all}`] : [])
  ]
  const advice = "Lower PROCESSES or DATABASE_POOL_SIZE, raise the limit, or end what holds connections."
  const said = `PROCESSES × pools × DATABASE_POOL_SIZE needs ${needed} connections`
  if (limits.length > 0) return [fail(`${said}, and ${limits.join(", and ")}.`, advice)]
  return free + own < needed
    ? [warn(`${said}; ${free} of ${all} are free.`, advice)]
    : [ok(`${said} at most; ${free} of ${all} are free.`)]
})
