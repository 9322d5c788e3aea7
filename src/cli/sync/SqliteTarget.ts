/** A copy in a SQLite file. */
import { statSync } from "node:fs"
import { Effect } from "effect"
import * as Files from "./Files.ts"
import * as SqlCopy from "./SqlCopy.ts"
import type { ColumnType } from "./Table.ts"
import type * as Target from "./Target.ts"

/** A decimal that is whole is an integer, and any other a double, which has every decimal of 15 digits. */
const typeOf = (type: ColumnType) => {
  if (type === "numeric") return "decimal"
  return type === "integer" || type === "boolean" ? "integer" : "text"
}

/** The target of a file, which is made if there is none. */
export const make = (file: string, name: string, softDelete = false): Target.Target => {
  const run = <A>(work: () => A) => Files.attempt(name, work)
  const inodeOf = () => statSync(file, { throwIfNoEntry: false })?.ino

  const open = Effect.fnUntraced(function* (opening: Target.OpenOptions) {
    yield* Files.lock(name, `${file}.sync-lock`)
    const database = yield* Files.openSqlite(name, file)
    // Readers of the copy do not wait for a write, nor writes for readers.
    yield* run(() => database.exec("pragma journal_mode = wal; pragma synchronous = normal"))
    const inode = inodeOf()
    // Node 22 takes no numbers of parameters.
    const query: SqlCopy.Dialect["run"] = (statement, params = []) =>
      run(() => database.prepare(statement.replaceAll(/\$\d/g, "?")).all(...params))
    return yield* SqlCopy.open(
      {
        name,
        quote: SqlCopy.quoteName,
        typeOf,
        position: "integer primary key",
        begin: () => "begin immediate",
        empty: "delete from",
        run: query,
        // A file that was removed can still be written, and nobody would see it.
        columnsOf: (table) =>
          run(() => (inodeOf() === inode ? database.prepare("select name from pragma_table_info(?)").all(table) : [])),
        append: (table, columns, rows) => {
          const into = `${SqlCopy.quoteName(table)} (${SqlCopy.namesOf(columns)})`
          // Lists and objects are kept as JSON, booleans as 0 and 1.
          const values = columns.map((column) => `json_extract(value, '$.${SqlCopy.quoteName(column.name)}')`)
          return query(`insert into ${into} select ${values.join(", ")} from json_each($1)`, [JSON.stringify(rows)])
        },
        softDelete
      },
      opening
    )
  })

  return { name, open }
}
