/** A copy in a schema of a Postgres. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Redacted, Result, Schedule } from "effect"
import { Reactivity } from "effect/reactivity"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import * as ConnectionUrl from "../../database/ConnectionUrl.ts"
import * as Route from "../../database/Route.ts"
import * as SqlFailure from "../../database/SqlFailure.ts"
import * as SqlCopy from "./SqlCopy.ts"
import type { Table } from "./Table.ts"
import * as Target from "./Target.ts"

export interface Options {
  /** With a password, unless `PGPASSWORD` or a password file has it. */
  readonly url: Redacted.Redacted
  readonly schema: string
  /** The pages applied at the same time. */
  readonly concurrency: number
}

/** The name without user and password. */
const nameOf = ({ schema, url }: Options) => {
  const servers = Result.match(ConnectionUrl.parse(Redacted.value(url)), {
    onFailure: () => "postgres://",
    onSuccess: (read) => ConnectionUrl.format({ ...read, user: undefined })
  })
  return `${servers}, schema ${schema}`
}

const reasonOf = ({ reason }: SqlError) => {
  const text = reason.cause instanceof Error ? reason.cause.message : reason.message
  return text === "" ? reason._tag : text
}

/** The codes of a Postgres that is stopping or starting. */
const stopping = "57P"

const failureOf = (name: string) => (error: SqlError) =>
  error.reason._tag === "ConnectionError" || SqlFailure.isBusy(error) || SqlFailure.codeOf(error).startsWith(stopping)
    ? new Target.TargetUnavailable({ message: `${name} does not respond: ${reasonOf(error)}` })
    : new Target.TargetRefused({ message: `${name} refuses: ${reasonOf(error)}` })

/** A definition for `jsonb_to_recordset`. */
const shapeOf = ({ columns }: Table) => columns.map(({ name, type }) => `${SqlCopy.quoteName(name)} ${type}`).join(", ")

const isFailure = (defect: unknown) => isSqlError(defect) || Target.isTargetError(defect)

// A process that was killed holds its lock until the server notices.
const lockAttempts = { schedule: Schedule.spaced("250 millis"), times: 20 }

/** Takes a schema, in a session of its own. */
const lock = Effect.fnUntraced(function* (sql: PgClient.PgClient, schema: string) {
  const session = yield* sql.reserve
  const attempt = Effect.map(
    session.executeUnprepared(
      "select pg_try_advisory_lock(hashtextextended('practice-data sync ' || $1, 0)) as taken",
      [schema],
      undefined
    ),
    ([row]) => row?.["taken"] === true
  )
  return yield* Effect.repeat(attempt, { until: (isTaken) => isTaken, ...lockAttempts })
})

/** The target of a `postgres://` URL. */
export const make = (options: Options): Target.Target => {
  const place: Target.Place = { name: nameOf(options), elsewhere: "another schema with --schema NAME" }
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
        now: "now()",
        run,
        transaction: (work) =>
          sql.withTransaction(work).pipe(
            // If a connection breaks, the rollback fails too, and both failures come as defects.
            Effect.catchDefect((defect) => (isFailure(defect) ? Effect.fail(defect) : Effect.die(defect))),
            Effect.catchTag("SqlError", (error) => Effect.fail(toTargetError(error)))
          ),
        columnsOf: (table) =>
          Effect.map(
            run(
              `select attname as name from pg_attribute
               where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`,
              [quote(table)]
            ),
            (rows) => rows.map(({ name }) => String(name))
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
