/**
 * The settings of sessions where a connection pooler keeps them from being asked for: whether they are in force, and
 * giving them to the logins, which always works. A session takes the settings of its login, and not those of the roles
 * that the login is a member of.
 */
import { Effect, Record } from "effect"
import type { PgClient } from "@effect/sql-pg"
import type { SqlError } from "effect/sql/SqlError"
import { codeOf, isUnreachable } from "./SqlFailure.ts"

export type Settings = Readonly<Record<string, string>>

/** A setting that is not in force. */
export interface Lost {
  readonly name: string
  readonly asked: string
  readonly found: string
}

/**
 * What a login of the service may have, whichever of its pools it is for; times in milliseconds. `lock_timeout` is not
 * among them: reads want a short one, and deliveries none.
 */
export const ofLogins = {
  TimeZone: "UTC",
  client_connection_check_interval: "500",
  enable_bitmapscan: "off",
  enable_seqscan: "off",
  statement_timeout: "60000"
} as const satisfies Settings

const isOfLogins = (name: string): name is keyof typeof ofLogins => name in ofLogins

/**
 * What of the settings that a pool asks for its sessions lack. What a login has instead is good enough.
 *
 * @param asked by name, as `pg_settings` shows them
 */
export const lost = (sql: PgClient.PgClient, asked: Settings): Effect.Effect<ReadonlyArray<Lost>, SqlError> =>
  Effect.map(
    sql<{ name: string; setting: string }>`
      select name, setting from pg_settings where ${sql.in("name", Object.keys(asked))}`,
    (rows) => {
      const found = new Map(rows.map(({ name, setting }) => [name, setting]))
      return Record.toEntries(asked).flatMap(([name, value]) => {
        const setting = found.get(name) ?? "unknown"
        const isFine = setting === value || !isOfLogins(name) || setting === ofLogins[name]
        return isFine ? [] : [{ name, asked: value, found: setting }]
      })
    }
  )

/** For people. */
export const describe = (settings: ReadonlyArray<Lost>) =>
  settings.map(({ asked, found, name }) => `${name} is ${found} instead of ${asked}`).join(", ")

/** The statements that give the login of a session what it lacks, for good. */
export const statementsFor = (
  sql: PgClient.PgClient,
  settings: ReadonlyArray<Lost>
): Effect.Effect<ReadonlyArray<string>, SqlError> =>
  Effect.map(
    sql<{ alter: string }>`select format('alter role %I in database %I', current_user, current_database()) as alter`,
    ([row]) =>
      settings.flatMap(({ name }) =>
        row === undefined || !isOfLogins(name) ? [] : [`${row.alter} set ${name} = '${ofLogins[name]}'`]
      )
  )

interface Missing {
  readonly login: string
  readonly statement: string
}

/** What the logins that are members of the service's roles lack. What someone has set for one stays as it is. */
const missing = (sql: PgClient.PgClient) =>
  sql<Missing>`
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
    order by r.rolname, s.name`

/**
 * Gives the logins that are members of the service's roles the settings of sessions, in this database. The names of the
 * logins that got some, and of those that this login may not change.
 */
export const giveToLogins = Effect.fn("SessionSettings.giveToLogins")(function* (sql: PgClient.PgClient) {
  const given = new Set<string>()
  const refused = new Set<string>()
  for (const { login, statement } of yield* missing(sql)) {
    if (refused.has(login)) continue
    yield* sql.unsafe(statement).pipe(
      Effect.map(() => given.add(login)),
      Effect.catchIf(
        // Not only where it may not: another may change or drop the login just now.
        (error) => !isUnreachable(error) && codeOf(error) !== "",
        () => Effect.succeed(refused.add(login))
      )
    )
  }
  return { given: [...given], refused: [...refused] }
})
