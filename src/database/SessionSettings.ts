/**
 * Settings of sessions behind a connection pooler, which drops those that a session asks for: finding the missing ones,
 * and giving them to logins. A session does not take the settings of the roles that its login is a member of.
 */
import { Effect, Schema } from "effect"
import type { PgClient } from "@effect/sql-pg"
import { rowsOf } from "./Columns.ts"
import { codeOf, isUnreachable } from "./SqlFailure.ts"

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
const ofLoginsAsJson = JSON.stringify(ofLogins)

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

/**
 * Gives settings to the logins in the service's roles, in this database. Those that a login has already stay as they are.
 * Returns the logins that were changed or refused.
 */
export const giveToLogins = Effect.fn("SessionSettings.giveToLogins")(function* (sql: PgClient.PgClient) {
  const missing = yield* rowsOf(Schema.Struct({ login: Schema.String, statement: Schema.String }))(sql`
    select r.rolname as login,
      format('alter role %I in database %I set %I = %L', r.rolname, current_database(), s.name, s.value) as statement
    from pg_roles r cross join jsonb_each_text(${ofLoginsAsJson}::text::jsonb) s (name, value)
    where r.rolcanlogin and not r.rolsuper
      and exists (
        select from pg_roles g
        where g.rolname in ('practice_data_api', 'practice_data_intake', 'practice_data_worker')
          and pg_has_role(r.oid, g.oid, 'member'))
      and not exists (
        select from pg_db_role_setting d cross join unnest(d.setconfig) config
        where d.setrole = r.oid and starts_with(lower(config), lower(s.name) || '=')
          and d.setdatabase in (0, (select oid from pg_database where datname = current_database())))
    order by r.rolname, s.name`)
  const given = new Set<string>()
  const refused = new Set<string>()
  for (const { login, statement } of missing) {
    if (refused.has(login)) continue
    yield* sql.unsafe(statement).pipe(
      Effect.map(() => given.add(login)),
      Effect.catchIf(
        // Not only for lack of a privilege: another session may change or drop the login at the same time.
        (error) => !isUnreachable(error) && codeOf(error) !== "",
        () => Effect.succeed(refused.add(login))
      )
    )
  }
  return { given: [...given], refused: [...refused] }
})
