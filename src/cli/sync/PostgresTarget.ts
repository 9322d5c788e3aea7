/** A copy in a schema of a Postgres. */
import { Duration, Effect, Predicate, Redacted, Schedule } from "effect"
import type { Client } from "pg"
import * as Route from "../../database/Route.ts"
import { type Failed, Refused, Unavailable } from "../Usage.ts"
import * as SqlCopy from "./SqlCopy.ts"
import * as Target from "./Target.ts"

interface Options {
  /** With a password, unless `PGPASSWORD` or a password file has it. */
  readonly url: Redacted.Redacted
  /** The servers and the database, without a user. */
  readonly database: string
  readonly schema: string
  readonly softDelete: boolean
}

/** A failed connection, a short resource, a deadlock or a timeout, a server that stops or has become a standby. */
const isTemporary = /^(08|40|53|57|25006|55P03)/

/** Tells what a retry helps from what the server refuses. */
export const failureOf =
  (name: string) =>
  (cause: unknown): Failed => {
    const code = Predicate.hasProperty(cause, "code") ? String(cause.code) : ""
    const message = Predicate.isError(cause) && cause.message !== "" ? cause.message : code
    // A SQLSTATE has a digit; the system's codes of a failed connection, such as EPIPE, have none.
    const isRefusal = /^(?=.*\d)[\dA-Z]{5}$/.test(code) || message.startsWith("SASL")
    if (!isRefusal) return new Unavailable({ message: `${name} does not respond: ${message}` })
    const Failure = isTemporary.test(code) ? Unavailable : Refused
    return new Failure({ message: `${name} refuses: ${message}` })
  }

const escapes: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" }

const escape = (text: string) =>
  /[\\\n\r\t]/.test(text) ? text.replaceAll(/[\\\n\r\t]/g, (character) => escapes[character] ?? "") : text

const elementOf = (value: unknown) =>
  Predicate.isString(value) ? `"${value.replaceAll(/["\\]/g, String.raw`\$&`)}"` : "NULL"

/** A value as COPY takes it. */
const fieldOf = (value: unknown, type: Target.ColumnType) => {
  if (Predicate.isNullish(value)) return "\\N"
  if (Predicate.isNumber(value) || Predicate.isBoolean(value)) return String(value)
  if (type === "text[]" && Array.isArray(value)) return escape(`{${value.map(elementOf).join(",")}}`)
  return escape(Predicate.isString(value) && type !== "jsonb" ? value : JSON.stringify(value))
}

/** Opens a session on the server of a route, until the scope closes. */
const connect = Effect.fnUntraced(function* (url: Redacted.Redacted, toFailure: (cause: unknown) => Failed) {
  const route = yield* Route.make(url, {
    applicationName: "practice-data-sync",
    connectTimeout: "10 seconds",
    startupParameters: {}
  })
  yield* route.find
  // Other targets do not load it.
  const { Client } = yield* Effect.promise(() => import("pg"))
  const config = route.configOf({})
  const password = Effect.isEffect(config.password) ? yield* config.password : config.password
  const client = new Client({
    host: config.host,
    port: config.port,
    user: config.username,
    database: config.database,
    password: () => Promise.resolve(password === undefined ? "" : Redacted.value(password)),
    ssl: config.ssl,
    application_name: config.applicationName,
    options: config.startupOptions,
    connectionTimeoutMillis: Duration.toMillis(config.connectTimeout ?? "10 seconds"),
    keepAlive: true,
    keepAliveInitialDelayMillis: 30_000
  })
  // The statement that runs, and each one after it, fails too.
  client.on("error", () => {})
  const end = Effect.tryPromise(() => client.end())
  yield* Effect.acquireRelease(Effect.tryPromise({ try: () => client.connect(), catch: toFailure }), () =>
    Effect.ignore(Effect.timeout(end, "2 seconds"))
  )
  return client
})

/** The part of a connection that the types of `pg` lack. */
interface CopyIn {
  readonly sendCopyFromChunk: (chunk: Uint8Array) => void
  readonly endCopyFrom: () => void
}

/** Copies lines into a table by a session. */
const copyIn = (client: Client, statement: string, lines: Uint8Array, toFailure: (cause: unknown) => Failed) =>
  Effect.callback<void, Failed>((resume) => {
    client.query({
      submit: (connection) => connection.query(statement),
      handleCopyInResponse: (connection: CopyIn) => {
        connection.sendCopyFromChunk(lines)
        connection.endCopyFrom()
      },
      handleCommandComplete: () => {},
      handleReadyForQuery: () => resume(Effect.void),
      handleError: (error: unknown) => resume(Effect.fail(toFailure(error)))
    })
  })

/** The target of a `postgres://` URL. */
export const make = (options: Options): Target.Target => {
  const name = `${options.database}, schema ${options.schema}`
  const schema = SqlCopy.quoteName(options.schema)
  const quote = (table: string) => `${schema}.${SqlCopy.quoteName(table)}`
  const toFailure = failureOf(name)

  const open = Effect.fnUntraced(function* (opening: Target.OpenOptions) {
    const client = yield* Effect.catchTag(connect(options.url, toFailure), "SqlError", ({ reason }) =>
      Effect.fail(toFailure(reason.cause))
    )
    const run: SqlCopy.Dialect["run"] = (statement, params = []) =>
      Effect.tryPromise({ try: () => client.query(statement, [...params]).then(({ rows }) => rows), catch: toFailure })

    // A user who may not make schemas can have one made.
    const [found] = yield* run("select to_regnamespace($1) is not null as exists", [schema])
    if (found?.["exists"] !== true) yield* run(`create schema if not exists ${schema}`)
    // A process that was killed holds its lock until the server notices.
    const taken = yield* Effect.repeat(
      run("select pg_try_advisory_lock(hashtextextended('practice-data sync ' || $1, 0)) as taken", [options.schema]),
      { until: ([row]) => row?.["taken"] === true, schedule: Schedule.spaced("250 millis"), times: 20 }
    )
    if (taken[0]?.["taken"] !== true) return yield* Target.inUse(name)
    return yield* SqlCopy.open(
      {
        name,
        quote,
        typeOf: (type) => type,
        position: "bigint generated always as identity",
        begin: (isStaging) => `begin; set local ${isStaging ? "synchronous_commit = off" : "work_mem = '64MB'"}`,
        empty: "truncate",
        run,
        columnsOf: (table) =>
          run(
            `select attname as name from pg_attribute
             where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`,
            [quote(table)]
          ),
        append: (table, columns, rows) => {
          const statement = `copy ${quote(table)} (${SqlCopy.namesOf(columns)}) from stdin`
          const lines = rows.map((row) => columns.map((column) => fieldOf(row[column.name], column.type)).join("\t"))
          return copyIn(client, statement, Buffer.from(`${lines.join("\n")}\n`), toFailure)
        },
        adopt: (staged, table, now) =>
          Effect.gen(function* () {
            const alter = `alter table ${quote(staged)}`
            yield* run("savepoint adopting")
            // One scan finds removals and resets, and one more makes the index.
            yield* run(
              `${alter} add check (not _removed), add constraint ${SqlCopy.quoteName(`${table}_pkey`)} primary key (id)`
            )
            yield* run(
              `${alter} drop column _position, drop column _removed,
                 add column _removed_at timestamptz, add column _synced_at timestamptz default '${now}'`
            )
            yield* run(`${alter} alter column _synced_at drop default`)
            yield* run(`${alter} rename to ${SqlCopy.quoteName(table)}`)
            return true
            // Some record has several changes, or is removed.
          }).pipe(Effect.catchTag("Refused", () => Effect.as(run("rollback to savepoint adopting"), false))),
        softDelete: options.softDelete
      },
      opening
    )
  })

  return { name, open }
}
