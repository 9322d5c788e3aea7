/** A copy in a SQLite file. */
import { statSync } from "node:fs"
import { Effect, Predicate } from "effect"
import * as Files from "./Files.ts"
import * as SqlCopy from "./SqlCopy.ts"
import type { ColumnType } from "./Table.ts"
import type * as Target from "./Target.ts"

/** A decimal that is whole is an integer, and any other a double, which has every decimal of 15 digits. */
const typeOf = (type: ColumnType) => {
  if (type === "numeric") return "decimal"
  return type === "integer" || type === "boolean" ? "integer" : "text"
}

/** Lists and objects are kept as JSON, booleans as 0 and 1. */
const valueOf = (value: unknown) => {
  // As a text, a large integer keeps its digits on its way to a column of numbers.
  if (Predicate.isNumber(value)) return Math.abs(value) > Number.MAX_SAFE_INTEGER ? String(value) : value
  if (Predicate.isString(value)) return value
  if (Predicate.isBoolean(value)) return value ? 1 : 0
  return Predicate.isNullish(value) ? null : JSON.stringify(value)
}

/** The target of a file, which is made if there is none. */
export const make = (file: string, place: Target.Place, softDelete = false): Target.Target => {
  const run = <A>(work: () => A) => Files.attempt(place.name, work)
  const inodeOf = () => statSync(file, { throwIfNoEntry: false })?.ino

  const open = Effect.fnUntraced(function* (opening: Target.OpenOptions) {
    yield* Files.lock(place, `${file}.sync-lock`)
    const database = yield* Files.openSqlite(place.name, file)
    // Readers of the copy do not wait for a write, nor writes for readers.
    yield* run(() => database.exec("pragma journal_mode = wal; pragma synchronous = normal"))
    const inode = inodeOf()
    return yield* SqlCopy.open(
      {
        ...place,
        quote: SqlCopy.quoteName,
        typeOf,
        position: "integer primary key",
        begin: () => run(() => database.exec("begin immediate")),
        // Node 22 takes no numbers of parameters.
        run: (statement, params = []) =>
          run(() => database.prepare(statement.replaceAll(/\$\d/g, "?")).all(...params.map(valueOf))),
        // A file that was removed can still be written, and nobody would see it.
        columnsOf: (table) =>
          run(() => (inodeOf() === inode ? database.prepare("select name from pragma_table_info(?)").all(table) : [])),
        append: (table, columns, rows) =>
          run(() => {
            const params = columns.map(() => "?").join(", ")
            const into = `${SqlCopy.quoteName(table)} (${SqlCopy.namesOf(columns)})`
            const statement = database.prepare(`insert into ${into} values (${params})`)
            for (const row of rows) statement.run(...columns.map(({ name }) => valueOf(row[name])))
          }),
        // It would write the rows again.
        adopt: () => Effect.succeed(false),
        truncate: (tables) => run(() => database.exec(tables.map((table) => `delete from ${table};`).join(" "))),
        softDelete
      },
      opening
    )
  })

  return { name: place.name, open }
}
