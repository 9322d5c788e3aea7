/** A copy in a schema of a Postgres. */
import { PgConnection } from "@effect/sql-pg"
import { Effect, type Redacted, Schedule } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import * as Route from "../../database/Route.ts"
import { codeOf, messageOf } from "../../database/SqlFailure.ts"
import { Refused, Unavailable } from "../Usage.ts"
import * as SqlCopy from "./SqlCopy.ts"
import * as Target from "./Target.ts"

export interface Options {
  /** With a password, unless `PGPASSWORD` or a password file has it. */
  readonly url: Redacted.Redacted
  /** The servers and the database, without a user. */
  readonly database: string
  readonly schema: string
  readonly softDelete: boolean
}

/** A failed connection, a short resource, a deadlock or a timeout, a server that stops or has become a standby. */
const isTemporary = /^(08|40|53|57|25006|55P03)/

const failureOf = (name: string) => (error: SqlError) => {
  const code = codeOf(error)
  // A SQLSTATE has a digit; the system's codes of a failed connection have none.
  const isRefusal = /\d/.test(code) || error.reason._tag === "AuthenticationError"
  if (!isRefusal) return new Unavailable({ message: `${name} does not respond: ${messageOf(error)}` })
  const Failure = isTemporary.test(code) ? Unavailable : Refused
  return new Failure({ message: `${name} refuses: ${messageOf(error)}` })
}

/** Opens a session on the server of a URL, until the scope closes. */
const connect = Effect.fnUntraced(function* (url: Redacted.Redacted) {
  const route = yield* Route.make(url, {
    applicationName: "practice-data-sync",
    connectTimeout: "10 seconds",
    startupParameters: {}
  })
  yield* route.find
  return yield* PgConnection.make(route.configOf({}))
})

/** The target of a `postgres://` URL. */
export const make = (options: Options): Target.Target => {
  const name = `${options.database}, schema ${options.schema}`
  const schema = SqlCopy.quoteName(options.schema)
  const quote = (table: string) => `${schema}.${SqlCopy.quoteName(table)}`
  const toFailure = failureOf(name)

  const open = Effect.fnUntraced(function* (opening: Target.OpenOptions) {
    const session = yield* Effect.mapError(connect(options.url), toFailure)
    const run: SqlCopy.Dialect["run"] = (statement, params = []) =>
      Effect.map(Effect.mapError(session.query(statement, params), toFailure), ({ rows }) => rows)

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
        begin: "begin",
        empty: "truncate",
        run,
        columnsOf: (table) =>
          run(
            `select attname as name from pg_attribute
             where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`,
            [quote(table)]
          ),
        rowsOf: (table, columns) =>
          `select ${SqlCopy.namesOf(columns)} from json_populate_recordset(null::${quote(table)}, $1)`,
        softDelete: options.softDelete
      },
      opening
    )
  })

  return { name, open }
}
