/** A copy in a schema of a Postgres. */
import { Duration, Effect, Predicate, Redacted } from "effect"
import { type ConnectionOptions, format } from "../../database/ConnectionUrl.ts"
import { type Failed, Refused, Unavailable } from "../Usage.ts"
import * as SqlCopy from "./SqlCopy.ts"
import type * as Target from "./Target.ts"

export interface PostgresOptions {
  readonly connection: ConnectionOptions
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

/** Opens a connection until the scope closes. Returns what runs its statements. */
const connect = Effect.fnUntraced(function* (options: ConnectionOptions, toFailure: ReturnType<typeof failureOf>) {
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

/** Of each transaction, since poolers and databases have settings of their own. */
const limits =
  "statement_timeout = '1h'; set local lock_timeout = '1min'; set local idle_in_transaction_session_timeout = '1min'"

export const make = ({ connection, schema: schemaName, softDelete }: PostgresOptions): Target.Target => {
  const name = `${format({ ...connection, user: undefined })}, schema ${schemaName}`
  const schema = SqlCopy.quoteName(schemaName)
  const quote = (table: string) => `${schema}.${SqlCopy.quoteName(table)}`

  const open = Effect.fnUntraced(function* (opening: Target.OpenOptions) {
    const run = yield* connect(connection, failureOf(name))
    const [own] = yield* run("select to_regnamespace($1) is not null as exists, hashtextextended($2, 0)::text as key", [
      schema,
      `practice-data sync ${schemaName}`
    ])
    const oneAtATime = `select pg_advisory_xact_lock(${String(own?.["key"])})`
    // Needs a privilege even where the schema exists. Of two sessions that make one at once, one would fail.
    if (own?.["exists"] !== true) yield* run(`${oneAtATime}; create schema if not exists ${schema}`)
    return yield* SqlCopy.open(
      {
        name,
        quote,
        typeOf: (type) => type,
        position: "bigint generated always as identity",
        begin: `begin; set local ${limits}; ${oneAtATime}`,
        empty: "truncate",
        run,
        columnsOf: (table) =>
          run(
            `select attname as name from pg_attribute
             where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`,
            [quote(table)]
          ),
        insert: (table, columns, rows) => {
          const names = SqlCopy.namesOf(columns)
          return run(
            `insert into ${quote(table)} (${names})
             select ${names} from json_populate_recordset(null::${quote(table)}, $1)`,
            [rows]
          )
        },
        softDelete
      },
      opening
    )
  })

  return { name, open }
}
