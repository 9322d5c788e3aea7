import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Runs a text of SQL statements, one after the other. A prepared statement holds only one, and `do` runs them all. */
export const script = (text: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.asVoid(sql.unsafe(`do $do$ begin execute $script$${text}$script$; end $do$`))
  )
