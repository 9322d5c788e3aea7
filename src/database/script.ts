import { readFile } from "node:fs/promises"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { textsOf } from "./Columns.ts"

/** Runs a text of SQL statements, one after the other. A prepared statement holds only one, and `do` runs them all. */
export const script = (text: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.asVoid(sql.unsafe(`do $do$ begin execute $script$${text}$script$; end $do$`))
  )

/** Runs a file of SQL. In its function bodies, `home` stands for the schema of the tables. */
export const scriptOf = Effect.fnUntraced(function* (file: URL) {
  const text = yield* Effect.orDie(Effect.tryPromise(() => readFile(file, "utf8")))
  const sql = yield* SqlClient.SqlClient
  const [home = "public"] = yield* textsOf(sql`select quote_ident(current_schema()) as text`)
  yield* script(text.replaceAll(/\bhome\./g, `${home}.`))
})
