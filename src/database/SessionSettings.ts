/** Settings of sessions behind a connection pooler, which drops those that a session asks for. */
import { Effect, Schema } from "effect"
import type { PgClient } from "@effect/sql-pg"
import { rowsOf } from "./Columns.ts"

/**
 * Settings that fit a login for any pool of the service; times in milliseconds. `lock_timeout` is not among them: reads
 * want a short one, and deliveries none.
 */
const ofLogins: Readonly<Record<string, string>> = {
  TimeZone: "UTC",
  client_connection_check_interval: "500",
  enable_bitmapscan: "off",
  enable_seqscan: "off",
  jit: "off",
  statement_timeout: "60000"
}

const Setting = Schema.Struct({ name: Schema.String, found: Schema.String, login: Schema.String })

/**
 * Requested settings that are not in effect, each with the statement that gives it to the login. Those of a login are good
 * enough.
 */
export const lost = (sql: PgClient.PgClient, asked: Readonly<Record<string, string>>) =>
  Effect.map(
    rowsOf(Setting)(sql`
      select name, setting as found, format('alter role %I in database %I', current_user, current_database()) as login
      from pg_settings where ${sql.in("name", Object.keys(asked))}`),
    (rows) =>
      rows.flatMap(({ found, login, name }) => {
        const [wanted, given] = [asked[name], ofLogins[name]]
        if (given === undefined || found === wanted || found === given) return []
        return [{ text: `${name} is ${found} instead of ${wanted}`, statement: `${login} set ${name} = '${given}'` }]
      })
  )
