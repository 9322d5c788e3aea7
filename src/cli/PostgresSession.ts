/** A session of its own on a Postgres, for commands that copy rows: statements, and COPY from this process. */
import { Duration, Effect, Predicate, Redacted, Result, Schedule, type Schema } from "effect"
import { rowsOf } from "../database/Columns.ts"
import { connectionOptions } from "../database/ConnectionUrl.ts"
import type { ColumnType } from "./sync/Target.ts"
import { type Failed, Refused, Unavailable } from "./Usage.ts"

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
export const fieldOf = (value: unknown, type: ColumnType) => {
  if (Predicate.isNullish(value)) return "\\N"
  if (Predicate.isNumber(value) || Predicate.isBoolean(value)) return String(value)
  if (type === "text[]" && Array.isArray(value)) return escape(`{${value.map(elementOf).join(",")}}`)
  return escape(Predicate.isString(value) && type !== "jsonb" ? value : JSON.stringify(value))
}

/** Opens a connection until the scope closes. */
const connect = Effect.fnUntraced(function* (
  url: Redacted.Redacted,
  applicationName: string,
  toFailure: ReturnType<typeof failureOf>
) {
  // Other targets do not load it.
  const { Client } = yield* Effect.promise(() => import("pg"))
  const { password, ...options } = Result.getOrThrow(connectionOptions(Redacted.value(url)))
  const client = new Client({
    host: options.host,
    port: options.port,
    user: options.user,
    database: options.database,
    password: password && Redacted.value(password),
    ssl: options.ssl,
    application_name: options.applicationName ?? applicationName,
    options: options.options,
    connectionTimeoutMillis: Duration.toMillis(options.connectTimeout ?? "10 seconds"),
    keepAlive: true,
    keepAliveInitialDelayMillis: 30_000
  })
  // The statement that runs, and each one after it, fails too.
  client.on("error", () => {})
  // It closes the socket of a statement that runs.
  const end = Effect.ignore(
    Effect.timeout(
      Effect.tryPromise(() => client.end()),
      "2 seconds"
    )
  )
  yield* Effect.acquireRelease(Effect.tryPromise({ try: () => client.connect(), catch: toFailure }), () => end)
  return { client, end }
})

interface CopyIn {
  readonly sendCopyFromChunk: (chunk: Uint8Array) => void
  readonly endCopyFrom: () => void
}

/** The locks of a client that was killed end within a second, those of one whose host is lost within two minutes. */
const settings = {
  statement_timeout: "0",
  tcp_keepalives_idle: "30",
  tcp_keepalives_interval: "10",
  tcp_keepalives_count: "3",
  tcp_user_timeout: "60s",
  client_connection_check_interval: "1s"
}

/** Opens a session until the scope closes. `name`: the database in messages, without any secret. */
export const open = Effect.fnUntraced(function* (url: Redacted.Redacted, name: string, applicationName: string) {
  const toFailure = failureOf(name)
  const { client, end } = yield* connect(url, applicationName, toFailure)
  const run = (
    statement: string,
    params: ReadonlyArray<unknown> = []
  ): Effect.Effect<ReadonlyArray<Readonly<Record<string, unknown>>>, Failed> =>
    Effect.tryPromise({
      try: () => client.query(statement, [...params]).then(({ rows }) => rows),
      catch: toFailure
      // Otherwise what the scope runs at its end would wait for the statement, such as for a lock.
    }).pipe(Effect.onInterrupt(() => end))
  const [server] = yield* run("select pg_backend_pid() as pid")
  // A pooler has ids of its own, and gives the sessions behind it to others.
  const isPooled = !Predicate.hasProperty(client, "processID") || client.processID !== server?.["pid"]
  if (!isPooled) {
    yield* run(
      `select set_config(name, value, false) from unnest($1::text[], $2::text[]) given (name, value) join pg_settings using (name)`,
      [Object.keys(settings), Object.values(settings)]
    )
  }
  return {
    run,
    rows: <A>(schema: Schema.Decoder<A>, ...statement: Parameters<typeof run>) => rowsOf(schema)(run(...statement)),
    isPooled,
    /** Takes a lock by its name, until the session or, if it is brief, the statement ends. False if another one has it. */
    takeLock: (lock: string, { isBrief = false } = {}) =>
      run(`select pg_try_advisory${isBrief ? "_xact" : ""}_lock(hashtextextended($1, 0)) as taken`, [lock]).pipe(
        Effect.map(([row]) => row?.["taken"] === true),
        Effect.repeat({ until: (isTaken) => isTaken, schedule: Schedule.spaced("250 millis"), times: 20 })
      ),
    /** Runs a statement `copy ... from stdin` over lines of fields. */
    copyIn: (statement: string, lines: string) =>
      Effect.callback<void, Failed>((resume) => {
        client.query({
          submit: (connection) => connection.query(statement),
          handleCopyInResponse: (connection: CopyIn) => {
            connection.sendCopyFromChunk(Buffer.from(lines))
            connection.endCopyFrom()
          },
          handleCommandComplete: () => {},
          handleReadyForQuery: () => resume(Effect.void),
          handleError: (error: unknown) => resume(toFailure(error))
        })
        return end
      })
  }
})

export type Session = Effect.Success<ReturnType<typeof open>>
