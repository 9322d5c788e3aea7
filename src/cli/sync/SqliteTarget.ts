/** SQLite, as Node brings it: files, and a copy in a file. */
import { statSync } from "node:fs"
import type { DatabaseSync } from "node:sqlite"
import { Effect, Predicate, type Scope } from "effect"
import * as FileLock from "../../process/FileLock.ts"
import { type Failed, Unavailable } from "../Usage.ts"
import * as Files from "./Files.ts"
import * as SqlCopy from "./SqlCopy.ts"
import type { ColumnType } from "./Table.ts"
import * as Target from "./Target.ts"

/** The system's codes for SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL and SQLITE_CANTOPEN. */
const codes: Readonly<Record<number, string>> = { 8: "EACCES", 10: "EIO", 13: "ENOSPC", 14: "EACCES" }

const failureOf = (name: string, cause: unknown): Failed => {
  if (FileLock.isLocked(cause)) return new Unavailable({ message: `${name} is locked by another program` })
  // The last byte of an extended result code.
  const code = Predicate.hasProperty(cause, "errcode") ? codes[Number(cause.errcode) & 0xff] : undefined
  return Files.failureOf(name, code === undefined ? cause : { code })
}

/** Runs statements, whose failures are those of the target. */
export const attempt = <A>(name: string, work: () => A): Effect.Effect<A, Failed> =>
  Effect.try({ try: work, catch: (cause) => failureOf(name, cause) })

/** Opens a file until the scope closes. */
export const open = Effect.fnUntraced(function* (
  name: string,
  file: string
): Effect.fn.Return<DatabaseSync, Failed, Scope.Scope> {
  const { DatabaseSync } = yield* FileLock.sqlite
  yield* Files.refuseDangling(file)
  return yield* Effect.acquireRelease(
    attempt(name, () => new DatabaseSync(file, { timeout: 10_000 })),
    (database) => Effect.sync(() => database.close())
  )
})

/** Takes a place for this process alone until the scope closes. */
export const lock = Effect.fnUntraced(function* (place: Target.Place, file: string) {
  yield* Files.refuseDangling(file)
  const isTaken = yield* Effect.mapError(FileLock.take(file), ({ cause }) => failureOf(place.name, cause))
  if (!isTaken) return yield* Target.inUse(place)
})

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

const openCopy = Effect.fnUntraced(function* (
  place: Target.Place,
  file: string,
  softDelete: boolean,
  opening: Target.OpenOptions
) {
  yield* lock(place, `${file}.sync-lock`)
  const database = yield* open(place.name, file)
  const run = <A>(work: () => A) => attempt(place.name, work)
  // Readers of the copy do not wait for a write, nor writes for readers.
  yield* run(() => database.exec("pragma journal_mode = wal; pragma synchronous = normal"))
  const inodeOf = () => statSync(file, { throwIfNoEntry: false })?.ino
  const inode = inodeOf()
  return yield* SqlCopy.open(
    {
      ...place,
      quote: SqlCopy.quoteName,
      typeOf,
      position: "integer primary key",
      begin: "begin immediate",
      beginStaging: "begin immediate",
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
          for (const row of rows) statement.run(...columns.map((_, index) => valueOf(row[index])))
        }),
      // It would write the rows again.
      adopt: () => Effect.succeed(false),
      truncate: (tables) => run(() => database.exec(tables.map((table) => `delete from ${table};`).join(" "))),
      softDelete
    },
    opening
  )
})

/** The target of a file, which is made if there is none. */
export const make = (file: string, place: Target.Place, softDelete = false): Target.Target => ({
  name: place.name,
  open: (opening) => openCopy(place, file, softDelete, opening)
})
