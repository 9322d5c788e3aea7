/**
 * The migrations: files of SQL in `schema/`. Each is applied once, in the order of this list, and recorded by its name. One
 * that has landed does not change.
 */
import { readFile } from "node:fs/promises"
import type { PgClient } from "@effect/sql-pg"
import { Data, Duration, Effect, Predicate, Schedule, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import type { Constructor } from "effect/sql/Statement"
import { invocation } from "../process/Package.ts"
import { decodeRows, decodeTexts } from "./Columns.ts"
import type { Store } from "./Store.ts"
import { inLongTransaction, isUndefined } from "./SqlFailure.ts"

/**
 * Settings of a migration's transaction, which a login, a database or a pooler may have otherwise: the text of a statement
 * depends on them, or its effect. A process that is paused holds its locks for seconds.
 */
const settings = {
  DateStyle: "ISO",
  TimeZone: "UTC",
  quote_all_identifiers: "off",
  standard_conforming_strings: "on",
  "plpgsql.extra_errors": "none",
  session_replication_role: "origin",
  idle_in_transaction_session_timeout: "5s"
}

/** Runs a text of SQL statements, one after the other. A prepared statement holds only one, and `do` runs them all. */
export const script = (text: string) =>
  SqlClient.SqlClient.use((sql) => sql.unsafe(`do $do$ begin execute $script$${text}$script$; end $do$`))

const defaultPrefix = "practice_data"

/** The prefix of the names of the roles. */
export const recordedPrefix = (sql: Constructor) =>
  Effect.map(decodeTexts(sql`select min(roles) as text from migrations`), ([prefix = defaultPrefix]) => prefix)

/**
 * Runs a file of SQL, as a migration. In its function bodies, `home` stands for the schema of the tables. The names of the
 * roles get the prefix that is recorded.
 */
export const runFile = Effect.fnUntraced(function* (file: URL) {
  const text = yield* Effect.orDie(Effect.tryPromise(() => readFile(file, "utf8")))
  const sql = yield* SqlClient.SqlClient
  const [home = "public"] = yield* decodeTexts(sql`select quote_ident(current_schema()) as text`)
  const prefix = yield* recordedPrefix(sql)
  const roles = /\bpractice_data(?=_(api|intake|worker|writer)\b)/g
  yield* script(text.replaceAll(/\bhome\./g, `${home}.`).replaceAll(roles, prefix))
})

/** Migrations by their names. */
export type Migrations = Readonly<Record<string, Effect.Effect<unknown, SqlError, SqlClient.SqlClient>>>

export const all: Migrations = Object.fromEntries(
  ["00001_records", "00002_changes", "00003_deletions", "00004_access"].map((name) => [
    name,
    runFile(new URL(`./schema/${name}.sql`, import.meta.url))
  ])
)

const lock = 7_240_618_273

/** The message has the reason, and the remedy. */
export class CannotMigrate extends Data.TaggedError("CannotMigrate")<{
  readonly message: string
  readonly cause?: unknown
}> {}

/** Fails if the database cannot store every character. */
const requireUtf8 = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const [encoding] = yield* decodeTexts(sql`select getdatabaseencoding() as text where getdatabaseencoding() <> 'UTF8'`)
  if (encoding === undefined) return
  const message = `The encoding of the database is ${encoding}, and only UTF8 has every character. Use another: create database NAME template template0 encoding 'UTF8' lc_collate 'C' lc_ctype 'C'`
  return yield* new CannotMigrate({ message })
})

const roleNames = (prefix: string) => ["api", "intake", "worker", "writer"].map((name) => `${prefix}_${name}`)

/** The statement that lets a login grant the roles to others, which those roles that it did not create need. */
const grantStatement = (roles: ReadonlyArray<string>, login: string) =>
  `grant ${roles.join(", ")} to ${login} with admin option`

/** Fails if a role is missing, and the login may create none. */
const requireRoles = Effect.fnUntraced(function* (sql: PgClient.PgClient, prefix: string) {
  const roles = roleNames(prefix)
  const found = yield* decodeRows(Schema.Struct({ role: Schema.String, login: Schema.String }))(sql`
    select role, quote_ident(rolname) as login from unnest(${roles}::text[]) role, pg_roles
    where rolname = current_user and not (rolsuper or rolcreaterole) and to_regrole(role) is null`)
  const [first] = found
  if (first === undefined) return
  const creates = found.map(({ role }) => `create role ${role};`).join(" ")
  return yield* new CannotMigrate({
    message: `The login ${first.login} may not create roles. As one that may, run: ${creates} ${grantStatement(roles, first.login)};`
  })
})

/** The statement for another login to run, if this one may not grant the roles to logins. */
export const grantNeeded = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const prefix = yield* recordedPrefix(sql)
  const roles = roleNames(prefix)
  // Before 16, CREATEROLE is enough.
  const [login] = yield* decodeTexts(sql`
    select quote_ident(rolname) as text from pg_roles where rolname = current_user and not rolsuper
      and not (rolcreaterole and current_setting('server_version_num')::integer < 160000)
      and exists (select from unnest(${roles}::text[]) role where not pg_has_role(role, 'usage with admin option'))`)
  return login === undefined ? undefined : grantStatement(roles, login)
})

/** Applies a migration that is not recorded, with its record, in a transaction. Returns true if it was not recorded. */
const apply = (sql: PgClient.PgClient, name: string, statements: Migrations[string], roles: string | undefined) =>
  inLongTransaction(
    sql,
    Effect.gen(function* () {
      // Setting one may need a privilege.
      yield* sql`
        select set_config(key, value, true) from jsonb_each_text(${sql.json(settings)}::jsonb)
        where current_setting(key, true) is distinct from value`
      yield* sql`select pg_advisory_xact_lock(${lock})`
      yield* script(`
        create table if not exists migrations (
          name text collate "C" primary key,
          applied_at timestamptz not null default now(),
          roles text not null default '${defaultPrefix}'
        )`)
      if ((yield* sql`select from migrations where name = ${name}`).length > 0) return false
      yield* sql`
        insert into migrations (name, roles)
        select ${name}, coalesce(min(roles), ${roles ?? defaultPrefix}) from migrations`
      yield* statements
      return true
    })
  ).pipe(Effect.provideService(SqlClient.SqlClient, sql))

/**
 * Applies the missing migrations, and returns their names. Any number of processes may do so at once: an advisory lock lets
 * one go first, and the others find nothing left to do. Revokes the privileges of others, unless the login is not the owner.
 *
 * @param roles what the names of new roles begin with
 */
export const migrate = Effect.fn("Migrations.migrate")(function* (
  sql: PgClient.PgClient,
  migrations = all,
  roles?: string
) {
  const { isEmpty, names } = yield* missing(sql, migrations)
  if (names.length > 0) yield* requireUtf8(sql)
  if (isEmpty) yield* requireRoles(sql, roles ?? defaultPrefix)
  const applied = yield* Effect.filter(names, (name) =>
    Effect.mapError(
      apply(sql, name, migrations[name] ?? Effect.void, roles),
      (cause) => new CannotMigrate({ cause, message: `The migration ${name} failed` })
    )
  )
  const revoked = sql`
    select from pg_proc where oid = to_regproc('revoke_from_others') and pg_has_role(proowner, 'usage')`
  if (names.length === 0 && (yield* revoked).length > 0) yield* sql`call revoke_from_others()`
  return applied
})

/** The migrations that a database lacks, in their order. */
export const missing = Effect.fnUntraced(function* (sql: PgClient.PgClient, migrations = all) {
  const recorded: Effect.Effect<ReadonlyArray<string>, SqlError> = Effect.catchIf(
    decodeTexts(sql`select name as text from migrations`),
    isUndefined,
    () => Effect.succeed([])
  )
  const applied = new Set(yield* recorded)
  return { isEmpty: applied.size === 0, names: Object.keys(migrations).filter((name) => !applied.has(name)) }
})

/** True if every migration has been applied. */
export const isMigrated = (sql: PgClient.PgClient) => Effect.map(missing(sql), ({ names }) => names.length === 0)

/** A database lacks migrations. */
export class NotMigrated extends Schema.TaggedError<NotMigrated>()("NotMigrated", { message: Schema.String }) {}

/** Fails unless every migration has been applied, or the role may not read them. The message begins with the name. */
export const requireMigrated = Effect.fnUntraced(function* (name: string, sql: PgClient.PgClient) {
  const { isEmpty, names } = yield* Effect.catchReason(missing(sql), "SqlError", "AuthorizationError", () =>
    Effect.succeed({ isEmpty: false, names: [] })
  )
  if (names.length === 0) return
  const what = isEmpty ? "is not migrated" : `lacks the migrations ${names.join(", ")}`
  return yield* new NotMigrated({ message: `${name} ${what}. Run: ${invocation("migrate")}` })
})

/** Waits until every migration has been applied, also while the database is down. Logs once that some are missing. */
export const untilMigrated = Effect.fnUntraced(function* (
  name: string,
  database: PgClient.PgClient & Pick<Store, "run">
) {
  const request = { key: "the migrations", within: Duration.seconds(5), unavailable: () => "no answer" as const }
  const schedule = Schedule.spaced("500 millis")
  const check = database.run(request, requireMigrated(name, database))
  const waitFor = Effect.fnUntraced(function* ({ message }: NotMigrated) {
    yield* Effect.logWarning(message)
    yield* Effect.retry(check, schedule)
    yield* Effect.log(`${name} is migrated`)
  })
  const first = Effect.retry(check, { schedule, while: Predicate.isString })
  yield* Effect.orDie(Effect.catchTag(first, "NotMigrated", waitFor))
})
