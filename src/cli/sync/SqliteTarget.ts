/** A copy in a SQLite file. */
import { statSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { Effect, Predicate } from "effect"
import * as Failure from "../../process/Failure.ts"
import * as Files from "../../process/Files.ts"
import { type Failed, Refused, refused, Unavailable } from "../Usage.ts"
import * as SqlCopy from "./SqlCopy.ts"
import type * as Target from "./Target.ts"

/** The system's codes for SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL and SQLITE_CANTOPEN. */
const codes: Readonly<Record<number, string>> = { 8: "EACCES", 10: "EIO", 13: "ENOSPC", 14: "EACCES" }

/** Tells what a retry helps, such as a full disk, from what it does not. */
export const failureOf =
  (name: string) =>
  (cause: unknown): Failed => {
    if (Files.isLocked(cause)) return new Unavailable({ message: `${name} is locked by another program` })
    // The last byte of an extended result code.
    const code = Predicate.hasProperty(cause, "errcode") ? codes[Number(cause.errcode) & 0xff] : undefined
    const Class = code === "EIO" || code === "ENOSPC" ? Unavailable : Refused
    return new Class({ message: `Cannot use ${name}: ${Failure.reasonOfFile(code === undefined ? cause : { code })}` })
  }

/** A decimal that is whole is an integer, and any other a double, which has every decimal of 15 digits. */
const types = new Map<Target.ColumnType, string>([
  ["numeric", "decimal"],
  ["integer", "integer"],
  ["boolean", "integer"]
])

export const make = (file: string, name: string, softDelete: boolean): Target.Target => {
  const attempt = <A>(work: () => A) => Effect.try({ try: work, catch: failureOf(name) })
  const inode = attempt(() => statSync(file, { throwIfNoEntry: false })?.ino)

  const open = Effect.fnUntraced(function* (opening: Target.OpenOptions) {
    const isTaken = yield* Effect.mapError(Files.takeLock(`${file}.sync-lock`), ({ cause }) => failureOf(name)(cause))
    if (!isTaken) {
      return yield* refused(`Another process is syncing the copy in ${name}. Stop it first, or choose another target.`)
    }
    const database = yield* Effect.acquireRelease(
      attempt(() => new DatabaseSync(file, { timeout: 10_000 })),
      (opened) => Effect.sync(() => opened.close())
    )
    // Readers of the copy do not wait for a write, nor writes for readers.
    yield* attempt(() => database.exec("pragma journal_mode = wal; pragma synchronous = normal"))
    const made = yield* inode
    const run: SqlCopy.Dialect["run"] = (statement, params = []) =>
      attempt(() => database.prepare(statement.replaceAll(/\$\d/g, "?")).all(...params))
    return yield* SqlCopy.open(
      {
        name,
        quote: SqlCopy.quoteName,
        typeOf: (type) => types.get(type) ?? "text",
        position: "integer primary key",
        begin: "begin immediate",
        empty: "delete from",
        run,
        // A file that was removed can still be written, and nobody would see it.
        columnsOf: Effect.fnUntraced(function* (table) {
          return (yield* inode) === made ? yield* run("select name from pragma_table_info($1)", [table]) : []
        }),
        insert: (table, columns, rows) => {
          // Lists and objects are kept as JSON, booleans as 0 and 1.
          const values = columns.map((column) => `json_extract(value, '$.${SqlCopy.quoteName(column.name)}')`)
          const into = `${SqlCopy.quoteName(table)} (${SqlCopy.namesOf(columns)})`
          return run(`insert into ${into} select ${values.join(", ")} from json_each($1)`, [rows])
        },
        softDelete
      },
      opening
    )
  })

  return { name, open }
}
