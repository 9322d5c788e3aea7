/** A copy in a SQLite file. */
import { statSync } from "node:fs"
import { Effect, Semaphore } from "effect"
import * as Sqlite from "./Sqlite.ts"
import * as SqlCopy from "./SqlCopy.ts"
import type { ColumnType, Table } from "./Table.ts"
import * as Target from "./Target.ts"

/**
 * A double has every decimal of 15 digits exactly. A numeric column would turn large ones into integers that JavaScript
 * cannot read.
 */
const types: Readonly<Record<ColumnType, string>> = {
  text: "text",
  numeric: "real",
  integer: "integer",
  boolean: "integer",
  timestamptz: "text",
  date: "text",
  "text[]": "text",
  jsonb: "text"
}

type Value = string | number | null

/** Lists and objects are kept as JSON, booleans as 0 and 1. */
const valueOf = (value: unknown): Value => {
  switch (typeof value) {
    case "string":
    case "number":
      return value
    case "boolean":
      return value ? 1 : 0
    default:
      return value === null || value === undefined ? null : JSON.stringify(value)
  }
}

const upsertOf = (table: Table) => {
  const params = table.columns.map(() => "?").join(", ")
  return `insert into ${SqlCopy.quoteName(table.name)} (${SqlCopy.namesOf(table.columns)}) values (${params}) ${SqlCopy.onConflict(table)}`
}

export interface Options {
  readonly file: string
  /** What it is called in messages. */
  readonly name: string
  /** How to name another place for the copy. */
  readonly elsewhere: string
}

/** The target of a file, which is made if there is none. */
export const make = ({ elsewhere, file, name }: Options): Target.Target => {
  const open = Effect.fnUntraced(function* (opening: Target.OpenOptions) {
    if (!(yield* Sqlite.lock(name, `${file}.sync-lock`))) {
      return yield* new Target.TargetRefused({
        message: `Another process keeps the copy in ${name} in step. Stop it first, or choose ${elsewhere}.`
      })
    }
    const database = yield* Sqlite.open(name, file)
    // Who reads the copy does not wait for it to be written, nor it for them.
    yield* Sqlite.attempt(name, () => database.exec("pragma journal_mode = wal; pragma synchronous = normal"))
    const alone = Semaphore.makeUnsafe(1)
    const inodeOf = () => statSync(file, { throwIfNoEntry: false })?.ino
    const inode = inodeOf()
    const execute = (statement: string) => Sqlite.attempt(name, () => database.exec(statement))
    const dialect: SqlCopy.Dialect = {
      name,
      elsewhere,
      quote: SqlCopy.quoteName,
      typeOf: (type) => types[type],
      now: "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')",
      // Node 22 takes no numbers of parameters.
      run: (statement, params = []) =>
        Sqlite.attempt(name, () => database.prepare(statement.replaceAll(/\$\d/g, "?")).all(...params.map(valueOf))),
      transaction: (work) =>
        Effect.acquireUseRelease(
          execute("begin immediate"),
          () => work,
          (_, exit) => (exit._tag === "Success" ? execute("commit") : Effect.ignore(execute("rollback")))
        ).pipe(Semaphore.withPermit(alone)),
      columnsOf: (table) =>
        Sqlite.attempt(name, () => {
          // A file that was removed can still be written, and nobody would see it.
          if (inodeOf() !== inode) return undefined
          const columns = database.prepare("select name from pragma_table_info(?)").all(table)
          return columns.length === 0 ? undefined : columns.map((column) => String(column["name"]))
        }),
      idsIn: (param) => `(select value as id from json_each(${param}))`,
      upsert: (table, records) =>
        Sqlite.attempt(name, () => {
          const statement = database.prepare(upsertOf(table))
          for (const record of records) statement.run(...table.columns.map((column) => valueOf(record[column.name])))
        })
    }
    return yield* SqlCopy.open(dialect, opening)
  })

  return { name, open }
}
