/** The kinds of copies: in a schema of a Postgres, or in a SQLite file. */
import { statSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { Duration, Effect, Predicate, Redacted, Result, type Scope } from "effect"
import { connectionOptions, type ConnectionOptions, format } from "../../database/ConnectionUrl.ts"
import * as Failure from "../../process/Failure.ts"
import * as Files from "../../process/Files.ts"
import { type Failed, misused, Refused, refused, Unavailable } from "../Usage.ts"
import * as SqlCopy from "./SqlCopy.ts"
import type { ColumnType } from "./Tables.ts"

const isSome = (rows: ReadonlyArray<unknown>) => rows.length > 0

/** A failed connection, a short resource, a deadlock or a timeout, a server that stops or has become a standby. */
const isTemporary = /^(08|40|53|57|25006|55P03)/

/** Distinguishes failures that a retry may help from refusals of the server. */
export const postgresFailure =
  (name: string) =>
  (cause: unknown): Failed => {
    const code = Predicate.hasProperty(cause, "code") ? String(cause.code) : ""
    const message = Predicate.isError(cause) && cause.message !== "" ? cause.message : code
    // A SQLSTATE has a digit; the system's codes of a failed connection, such as EPIPE, have none.
    const isRefusal = /^(?=.*\d)[\dA-Z]{5}$/.test(code) || message.startsWith("SASL")
    if (!isRefusal) return new Unavailable({ message: `${name} does not respond: ${message}` })
    const Kind = isTemporary.test(code) ? Unavailable : Refused
    return new Kind({ message: `${name} refuses: ${message}` })
  }

/** Opens a connection until the scope closes. Returns what runs its statements. */
const connect = Effect.fnUntraced(function* (
  options: ConnectionOptions,
  toFailure: ReturnType<typeof postgresFailure>
) {
  // Other targets do not load it. It reads a password from PGPASSWORD where the URL has none.
  const { Client } = yield* Effect.promise(() => import("pg"))
  const { applicationName, connectTimeout, password, ...rest } = options
  const client = new Client({
    ...rest,
    ...(password && { password: Redacted.value(password) }),
    application_name: applicationName ?? "practice-data-sync",
    connectionTimeoutMillis: Duration.toMillis(connectTimeout ?? "10 seconds"),
    keepAlive: true
  })
  // The statement that runs, and each one after it, fails too. `end` closes the socket of a statement that runs.
  client.on("error", () => {})
  const end = Effect.ignore(
    Effect.timeout(
      Effect.tryPromise(() => client.end()),
      "2 seconds"
    )
  )
  yield* Effect.acquireRelease(Effect.tryPromise({ try: () => client.connect(), catch: toFailure }), () => end)
  const run: SqlCopy.Dialect["run"] = (statement, params = []) =>
    Effect.tryPromise({
      try: () => client.query(statement, [...params]).then(({ rows }) => rows),
      catch: toFailure
      // Otherwise what the scope runs at its end would wait for the statement, such as for a lock.
    }).pipe(Effect.onInterrupt(() => end))
  return run
})

/** Set in each transaction, since poolers and databases have settings of their own. */
const limits =
  "statement_timeout = '1h'; set local lock_timeout = '1min'; set local idle_in_transaction_session_timeout = '1min'"

// A setting of Postgres 17 and later.
const lasting =
  "select set_config('transaction_timeout', '0', true) where current_setting('transaction_timeout', true) is not null"

/** A copy in a schema of a Postgres. */
export const postgres = (connection: ConnectionOptions, schemaName: string, softDelete: boolean) => {
  const name = `${format({ ...connection, user: undefined })}, schema ${schemaName}`
  const schema = SqlCopy.quoteName(schemaName)
  const quote = (table: string) => `${schema}.${SqlCopy.quoteName(table)}`

  const dialect = Effect.gen(function* (): Effect.fn.Return<SqlCopy.Dialect, Failed, Scope.Scope> {
    const run = yield* connect(connection, postgresFailure(name))
    const [own] = yield* run("select to_regnamespace($1) is not null as exists, hashtextextended($2, 0)::text as key", [
      schema,
      `practice-data sync ${schemaName}`
    ])
    const oneAtATime = `select pg_advisory_xact_lock(${String(own?.["key"])})`
    // Needs a privilege even where the schema exists. Of two sessions that make one at once, one would fail.
    if (own?.["exists"] !== true) yield* run(`${oneAtATime}; create schema if not exists ${schema}`)
    return {
      quote,
      typeOf: (type) => type,
      position: "bigint generated always as identity",
      begin: `begin; set local ${limits}; ${lasting}; ${oneAtATime}`,
      empty: "truncate",
      run,
      exists: (table) => Effect.map(run("select where to_regclass($1) is not null", [quote(table)]), isSome),
      insert: (table, columns, rows) => {
        const names = SqlCopy.columnList(columns)
        return run(
          `insert into ${quote(table)} (${names})
             select ${names} from json_populate_recordset(null::${quote(table)}, $1)`,
          [rows]
        )
      },
      softDelete
    }
  })

  return SqlCopy.target(name, dialect)
}

/** The system's codes for SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL and SQLITE_CANTOPEN. */
const codes: Readonly<Record<number, string>> = { 8: "EACCES", 10: "EIO", 13: "ENOSPC", 14: "EACCES" }

/** Distinguishes failures that a retry may help, such as a full disk, from others. */
export const sqliteFailure =
  (name: string) =>
  (cause: unknown): Failed => {
    if (Files.isLocked(cause)) return new Unavailable({ message: `${name} is locked by another program` })
    // The last byte of an extended result code.
    const code = Predicate.hasProperty(cause, "errcode") ? codes[Number(cause.errcode) & 0xff] : undefined
    const Class = code === "EIO" || code === "ENOSPC" ? Unavailable : Refused
    return new Class({ message: `Cannot use ${name}: ${Failure.reasonOfFile(code === undefined ? cause : { code })}` })
  }

/** A decimal that is whole is an integer, and any other a double, which has every decimal of 15 digits. */
const types = new Map<ColumnType, string>([
  ["numeric", "decimal"],
  ["integer", "integer"],
  ["boolean", "integer"]
])

/** A copy in a SQLite file. */
export const sqlite = (file: string, name: string, softDelete: boolean) => {
  const toFailure = sqliteFailure(name)
  const attempt = <A>(work: () => A) => Effect.try({ try: work, catch: toFailure })
  const inode = attempt(() => statSync(file, { throwIfNoEntry: false })?.ino)

  const dialect = Effect.gen(function* (): Effect.fn.Return<SqlCopy.Dialect, Failed, Scope.Scope> {
    const isTaken = yield* Effect.mapError(Files.takeLock(`${file}.sync-lock`), ({ cause }) => toFailure(cause))
    if (!isTaken) {
      return yield* refused(`Another process is syncing the copy in ${name}. Stop it first, or choose another target.`)
    }
    const database = yield* Effect.acquireRelease(
      attempt(() => new DatabaseSync(file, { timeout: 10_000 })),
      (opened) => Effect.sync(() => opened.close())
    )
    // Readers of the copy do not wait for a write, nor writes for readers.
    yield* attempt(() => database.exec("pragma journal_mode = wal; pragma synchronous = normal"))
    const made = yield* inode
    const run: SqlCopy.Dialect["run"] = (statement, params = []) =>
      attempt(() => database.prepare(statement.replaceAll(/\$\d/g, "?")).all(...params))
    return {
      quote: SqlCopy.quoteName,
      typeOf: (type) => types.get(type) ?? "text",
      position: "integer primary key",
      begin: "begin immediate",
      empty: "delete from",
      run,
      // A file that was removed can still be written, and nobody would see it.
      exists: Effect.fnUntraced(function* (table) {
        return (yield* inode) === made && isSome(yield* run("select 1 from pragma_table_info($1)", [table]))
      }),
      insert: (table, columns, rows) => {
        // Lists and objects are kept as JSON, booleans as 0 and 1.
        const values = columns.map((column) => `json_extract(value, '$.${SqlCopy.quoteName(column.name)}')`)
        const into = `${SqlCopy.quoteName(table)} (${SqlCopy.columnList(columns)})`
        return run(`insert into ${into} select ${values.join(", ")} from json_each($1)`, [rows])
      },
      softDelete
    }
  })

  return SqlCopy.target(name, dialect)
}

/** The target of `postgres://...` or `sqlite:FILE`. */
export const parseTarget = Effect.fnUntraced(function* (
  text: string,
  { schema, softDelete }: Readonly<{ schema: string | undefined; softDelete: boolean }>
) {
  const [, kind, given = ""] = /^(postgres(?:ql)?|sqlite):(.+)/s.exec(text) ?? []
  if (kind === undefined) return yield* misused("The target must be postgres://... or sqlite:FILE.")
  if (kind === "sqlite") {
    if (schema !== undefined) return yield* misused("--schema is for a postgres:// target.")
    return sqlite(given, text, softDelete)
  }
  const parsed = connectionOptions(text)
  if (Result.isFailure(parsed)) {
    return yield* misused(`The target is not a URL such as postgres://user@host:5432/database: ${parsed.failure}.`)
  }
  const name = schema ?? new URLSearchParams(text.split("?")[1]).get("schema") ?? "public"
  if (name === "") return yield* misused("The schema name is empty.")
  return postgres(parsed.success, name, softDelete)
})
