/** A copy in a schema of a Postgres. */
import { Effect, type Redacted } from "effect"
import * as Session from "../PostgresSession.ts"
import * as SqlCopy from "./SqlCopy.ts"
import * as Target from "./Target.ts"

interface PostgresOptions {
  /** With a password, unless `PGPASSWORD` or a password file has it. */
  readonly url: Redacted.Redacted
  /** The servers and the database, without a user. */
  readonly database: string
  readonly schema: string
  readonly softDelete: boolean
}

export const make = (options: PostgresOptions): Target.Target => {
  const name = `${options.database}, schema ${options.schema}`
  const schema = SqlCopy.quoteName(options.schema)
  const quote = (table: string) => `${schema}.${SqlCopy.quoteName(table)}`

  const open = Effect.fnUntraced(function* (opening: Target.OpenOptions) {
    const session = yield* Session.open(options.url, name, "practice-data-sync")
    const { copyIn, isPooled, run, takeLock } = session
    const lock = `practice-data sync ${options.schema}`

    // A user who may not make schemas can have one made.
    const [own] = yield* run("select to_regnamespace($1) is not null as exists, hashtextextended($2, 0)::text as key", [
      schema,
      lock
    ])
    const oneAtATime = `select pg_advisory_xact_lock(${String(own?.["key"])})`
    // Postgres checks and makes it in two steps: of two sessions at once, one would fail.
    if (own?.["exists"] !== true) yield* run(`${oneAtATime}; create schema if not exists ${schema}`)
    // Behind a pooler, each transaction checks that it is the only one to move the progress.
    if (!(yield* takeLock(lock, { isBrief: isPooled }))) return yield* Target.inUse(name)
    const limits =
      "statement_timeout = '1h'; set local lock_timeout = '1min'; set local idle_in_transaction_session_timeout = '1min'"
    return yield* SqlCopy.open(
      {
        name,
        quote,
        typeOf: (type) => type,
        position: "bigint generated always as identity",
        begin: (isStaging) =>
          `begin; set local ${limits}; set local ${isStaging ? "synchronous_commit = off" : "work_mem = '64MB'"};
           ${oneAtATime}`,
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
          const lines = rows.map((row) =>
            columns.map((column) => Session.fieldOf(row[column.name], column.type)).join("\t")
          )
          return copyIn(statement, `${lines.join("\n")}\n`)
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
