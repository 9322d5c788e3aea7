/** A copy in a schema of a Postgres. */
import { PgClient } from "@effect/sql-pg"
import { Effect, type Redacted, Schedule, Schema } from "effect"
import { Reactivity } from "effect/reactivity"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import * as Route from "../../database/Route.ts"
import * as SqlFailure from "../../database/SqlFailure.ts"
import { sqlReason } from "../../process/Failure.ts"
import { type Failed, Refused, Unavailable } from "../Usage.ts"
import * as SqlCopy from "./SqlCopy.ts"
import type { Table } from "./Table.ts"
import * as Target from "./Target.ts"

export interface Options {
  /** With a password, unless `PGPASSWORD` or a password file has it. */
  readonly url: Redacted.Redacted
  /** The servers and the database, without a user. */
  readonly database: string
  readonly schema: string
  /** The pages applied at the same time. */
  readonly concurrency: number
}

const reasonOf = (error: SqlError) => {
  const text = sqlReason(error)
  return text === "" ? error.reason._tag : text
}

/** The codes of a Postgres that is stopping or starting. */
const stopping = "57P"

const failureOf =
  (name: string) =>
  (error: SqlError): Failed =>
    error.reason._tag === "ConnectionError" || SqlFailure.isBusy(error) || SqlFailure.codeOf(error).startsWith(stopping)
      ? new Unavailable({ message: `${name} does not respond: ${reasonOf(error)}` })
      : new Refused({ message: `${name} refuses: ${reasonOf(error)}` })

/** A definition for `jsonb_to_recordset`. */
const shapeOf = ({ columns }: Table) => columns.map(({ name, type }) => `${SqlCopy.quoteName(name)} ${type}`).join(", ")

const isFailed = Schema.is(Schema.Union([Refused, Unavailable]))

const isFailure = (defect: unknown) => isSqlError(defect) || isFailed(defect)

/** Takes a schema, in a session of its own. A process that was killed holds its lock until the server notices. */
const lock = Effect.fnUntraced(function* (sql: PgClient.PgClient, schema: string) {
  const session = yield* sql.reserve
  const statement = "select pg_try_advisory_lock(hashtextextended('practice-data sync ' || $1, 0)) as taken"
  const attempt = Effect.map(
    session.executeUnprepared(statement, [schema], undefined),
    ([row]) => row?.["taken"] === true
  )
  return yield* Effect.repeat(attempt, {
    until: (isTaken) => isTaken,
    schedule: Schedule.spaced("250 millis"),
    times: 20
  })
})

/** The target of a `postgres://` URL. */
export const make = (options: Options): Target.Target => {
  const place: Target.Place = {
    name: `${options.database}, schema ${options.schema}`,
    elsewhere: "another schema with --schema NAME"
  }
  const schema = SqlCopy.quoteName(options.schema)
  const quote = (table: string) => `${schema}.${SqlCopy.quoteName(table)}`
  const toTargetError = failureOf(place.name)

  const open = Effect.fnUntraced(function* (opening: Target.OpenOptions) {
    const sql = yield* Route.make(options.url, {
      applicationName: "practice-data-sync",
      connectTimeout: "10 seconds",
      startupParameters: {},
      // Poolers that share sessions do not keep prepared statements.
      prepare: false
    }).pipe(
      Effect.flatMap((route) => PgClient.make(route.configOf({ maxConnections: options.concurrency + 1 }))),
      Effect.provideServiceEffect(Reactivity.Reactivity, Reactivity.make),
      Effect.mapError(toTargetError)
    )
    const run: SqlCopy.Dialect["run"] = (statement, params) =>
      Effect.mapError(sql.unsafe<Readonly<Record<string, unknown>>>(statement, params).unprepared, toTargetError)

    // A user who may not make schemas can have one made.
    const [found] = yield* run("select to_regnamespace($1) is not null as exists", [schema])
    if (found?.["exists"] !== true) yield* run(`create schema if not exists ${schema}`)
    if (!(yield* Effect.mapError(lock(sql, options.schema), toTargetError))) return yield* Target.inUse(place)
    return yield* SqlCopy.open(
      {
        ...place,
        quote,
        typeOf: (type) => type,
        run,
        transaction: (work) =>
          sql.withTransaction(work).pipe(
            // If a connection breaks, the rollback fails too, and both failures come as defects.
            Effect.catchDefect((defect) => (isFailure(defect) ? Effect.fail(defect) : Effect.die(defect))),
            Effect.catchTag("SqlError", (error) => Effect.fail(toTargetError(error)))
          ),
        columnsOf: (table) =>
          run(
            `select attname as name from pg_attribute
             where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`,
            [quote(table)]
          ),
        idsIn: (param) => `jsonb_array_elements_text(${param}::text::jsonb) given (id)`,
        upsert: (table, records) =>
          run(
            `insert into ${quote(table.name)} (${SqlCopy.namesOf(table.columns)})
             select ${SqlCopy.namesOf(table.columns)} from jsonb_to_recordset($1::text::jsonb) given (${shapeOf(table)})
             ${SqlCopy.onConflict(table)}`,
            [JSON.stringify(records)]
          )
      },
      opening
    )
  })

  return { name: place.name, open }
}
