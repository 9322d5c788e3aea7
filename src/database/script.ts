import { readFile } from "node:fs/promises"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { textsOf } from "./Columns.ts"

// On these the text of a statement depends, or its effect. A login or a database may have them otherwise.
const plain = [
  "('DateStyle', 'ISO')",
  "('TimeZone', 'UTC')",
  "('quote_all_identifiers', 'off')",
  "('standard_conforming_strings', 'on')",
  "('plpgsql.extra_errors', 'none')",
  "('session_replication_role', 'origin')"
]

/** Runs statements in a transaction. When the connection is lost, it fails with their error: to roll back would be a defect. */
export const inTransaction = <A, E, R>(sql: SqlClient.SqlClient, statements: Effect.Effect<A, E, R>) =>
  Effect.suspend((): Effect.Effect<A, E | SqlError, R> => {
    let first: Effect.Effect<never, E> | undefined
    const noted = Effect.tapError(statements, (error) => Effect.sync(() => (first = Effect.fail(error))))
    return Effect.catchDefect(sql.withTransaction(noted), (defect): Effect.Effect<never, E | SqlError> =>
      isSqlError(defect) ? (first ?? Effect.fail(defect)) : Effect.die(defect)
    )
  })

/** Runs statements in a transaction, however long each takes: a pool cancels those of requests. */
export const inLongTransaction = <A, E, R>(sql: SqlClient.SqlClient, statements: Effect.Effect<A, E, R>) =>
  inTransaction(sql, Effect.andThen(sql`set local statement_timeout = 0`, statements))

/** Runs a text of SQL statements, one after the other. A prepared statement holds only one, and `do` runs them all. */
export const script = (text: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.asVoid(
      sql.unsafe(`do $do$ begin perform set_config(name, value, true) from (values ${plain.join(", ")}) own (name, value)
        where current_setting(name, true) is distinct from value; execute $script$${text}$script$; end $do$`)
    )
  )

/** Runs a file of SQL. In its function bodies, `home` stands for the schema of the tables. */
export const scriptOf = Effect.fnUntraced(function* (file: URL) {
  const text = yield* Effect.orDie(Effect.tryPromise(() => readFile(file, "utf8")))
  const sql = yield* SqlClient.SqlClient
  const [home = "public"] = yield* textsOf(sql`select quote_ident(current_schema()) as text`)
  yield* script(text.replaceAll(/\bhome\./g, `${home}.`))
})
