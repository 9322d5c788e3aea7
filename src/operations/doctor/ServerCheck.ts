/** Checks the server of a database: its version, how far it is, its clock, and whether it can be written. */
import { Clock, Effect } from "effect"
import type { PgClient } from "@effect/sql-pg"
import { fail, ok, type Said, warn } from "./Finding.ts"

/** What a database is for. */
export interface Use {
  /** The variable that names it. */
  readonly variable: string
  readonly isWritten: boolean
}

interface Server {
  readonly version: string
  readonly number: number
  readonly database: string
  readonly login: string
  readonly is_replica: boolean
}

const oldest = 150_000

/** Milliseconds. */
const slow = 10
const skewed = 500
const wrong = 60_000

/** How long a statement takes, and how far the clock of the server is from this one, both in milliseconds. */
const timed = (sql: PgClient.PgClient) =>
  Effect.gen(function* () {
    const before = yield* Clock.currentTimeMillis
    const [row] = yield* sql<{ now: number }>`select extract(epoch from clock_timestamp())::float8 * 1000 as now`
    const after = yield* Clock.currentTimeMillis
    return { took: after - before, ahead: (row?.now ?? 0) - (before + after) / 2 }
  })

const clock = (took: number, ahead: number): Said => {
  const off = Math.abs(ahead)
  const said = `Its clock is ${(off / 1000).toFixed(1)} s ${ahead < 0 ? "behind" : "ahead of"} this machine's.`
  const advice = "Let both follow the same time server: leases and due times of deletions compare clocks."
  if (off - took / 2 > wrong) return fail(said, advice)
  if (off - took / 2 > skewed) return warn(said, advice)
  return ok("Its clock and this machine's agree.")
}

/** The server. */
export const check = Effect.fnUntraced(function* (sql: PgClient.PgClient, { isWritten, variable }: Use) {
  const [server] = yield* sql<Server>`
    select current_setting('server_version') as version, current_setting('server_version_num')::int as number,
      current_database() as database, current_user as login, pg_is_in_recovery() as is_replica`
  if (server === undefined) return []
  yield* timed(sql)
  const first = yield* timed(sql)
  const second = yield* timed(sql)
  const best = first.took < second.took ? first : second
  const { database, is_replica, login, number, version } = server
  const said: Array<Said> = [
    number < oldest
      ? fail(`PostgreSQL ${version} is too old.`, "Use PostgreSQL 15 or later.")
      : ok(`PostgreSQL ${version}, database ${database}, login ${login}; a statement takes ${best.took} ms.`)
  ]
  if (best.took > slow) {
    said.push(warn(`It is far away: each statement takes ${best.took} ms.`, "Run the service near its database."))
  }
  if (is_replica && isWritten) {
    said.push(
      fail(
        "It is a replica, which cannot be written.",
        `Point ${variable} at the primary: several servers with target_session_attrs=read-write, for example.`
      )
    )
  }
  if (is_replica && !isWritten) said.push(ok("It is a replica."))
  return [...said, clock(best.took, best.ahead)]
})
