/**
 * Settings of sessions behind a connection pooler, which drops those that a session asks for: finding the missing ones,
 * and giving them to logins, which always works. A session takes the settings of its login, and not those of the roles
 * that the login is a member of.
 */
import { Effect, Schema } from "effect"
import type { PgClient } from "@effect/sql-pg"
import { rowsOf } from "./Columns.ts"
import { codeOf, isUnreachable } from "./SqlFailure.ts"

/** A requested setting that is not in effect. */
export interface Lost {
  readonly name: string
  readonly asked: string
  readonly found: string
}

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

const settings = rowsOf(Schema.Struct({ name: Schema.String, setting: Schema.String }))

/**
 * Requested settings that are not in effect. Those of a login are good enough.
 *
 * @param asked by name, as `pg_settings` shows them
 */
export const lost = (sql: PgClient.PgClient, asked: Readonly<Record<string, string>>) =>
  Effect.map(
    settings(sql`select name, setting from pg_settings where ${sql.in("name", Object.keys(asked))}`),
    (rows): ReadonlyArray<Lost> =>
      Object.entries(asked).flatMap(([name, value]) => {
        const found = rows.find((row) => row.name === name)?.setting ?? "unknown"
        return [value, ofLogins[name] ?? found].includes(found) ? [] : [{ name, asked: value, found }]
      })
  )

/** Lost settings for people. */
export const describe = (given: ReadonlyArray<Lost>) =>
  given.map(({ asked, found, name }) => `${name} is ${found} instead of ${asked}`).join(", ")

/** The statements that give lost settings to the login of a session. */
export const statementsFor = (sql: PgClient.PgClient, given: ReadonlyArray<Lost>) =>
  Effect.map(
    settings(
      sql`select '' as name, format('alter role %I in database %I', current_user, current_database()) as setting`
    ),
    (rows) =>
      rows.flatMap(({ setting }) => given.map(({ name }) => `${setting} set ${name} = '${ofLogins[name] ?? ""}'`))
  )

/** The statements that logins in the service's roles lack. A setting that a login has already stays as it is. */
const missing = (sql: PgClient.PgClient) =>
  rowsOf(Schema.Struct({ login: Schema.String, statement: Schema.String }))(sql`
    select r.rolname as login,
      format('alter role %I in database %I set %I = %L', r.rolname, current_database(), s.name, s.value) as statement
    from pg_roles r cross join jsonb_each_text(${JSON.stringify(ofLogins)}::text::jsonb) s (name, value)
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

/** Gives settings to the logins in the service's roles, in this database. Returns the logins that were changed or refused. */
export const giveToLogins = Effect.fn("SessionSettings.giveToLogins")(function* (sql: PgClient.PgClient) {
  const given = new Set<string>()
  const refused = new Set<string>()
  for (const { login, statement } of yield* missing(sql)) {
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
