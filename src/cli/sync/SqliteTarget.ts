/** SQLite, as Node brings it: files, and a copy in a file. */
import { statSync } from "node:fs"
import type { DatabaseSync } from "node:sqlite"
import { Effect, Predicate, type Scope, Semaphore } from "effect"
import * as FileLock from "../../process/FileLock.ts"
import { type Failed, Unavailable } from "../Usage.ts"
import * as Files from "./Files.ts"
import * as SqlCopy from "./SqlCopy.ts"
import type { ColumnType, Table } from "./Table.ts"
import * as Target from "./Target.ts"

/** True for SQLITE_IOERR and SQLITE_FULL, in the last byte of an extended result code. */
const hasNoRoom = (cause: unknown) =>
  Predicate.hasProperty(cause, "errcode") && [10, 13].includes(Number(cause.errcode) & 0xff)

const failureOf = (name: string, cause: unknown): Failed =>
  FileLock.isLocked(cause)
    ? new Unavailable({ message: `${name} is locked by another program` })
    : Files.failureOf(name, cause, hasNoRoom(cause))

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

/**
 * A double has every decimal of 15 digits exactly. A numeric column would turn large ones into integers that JavaScript
 * cannot read.
 */
const typeOf = (type: ColumnType) => {
  if (type === "numeric") return "real"
  return type === "integer" || type === "boolean" ? "integer" : "text"
}

/** Lists and objects are kept as JSON, booleans as 0 and 1. */
const valueOf = (value: unknown) => {
  if (Predicate.isString(value) || Predicate.isNumber(value)) return value
  if (Predicate.isBoolean(value)) return value ? 1 : 0
  return Predicate.isNullish(value) ? null : JSON.stringify(value)
}

const upsertOf = (table: Table) => {
  const params = table.columns.map(() => "?").join(", ")
  return `insert into ${SqlCopy.quoteName(table.name)} (${SqlCopy.namesOf(table.columns)}) values (${params}) ${SqlCopy.onConflict(table)}`
}

const openCopy = Effect.fnUntraced(function* (place: Target.Place, file: string, opening: Target.OpenOptions) {
  yield* lock(place, `${file}.sync-lock`)
  const database = yield* open(place.name, file)
  const run = <A>(work: () => A) => attempt(place.name, work)
  const execute = (statement: string) => run(() => database.exec(statement))
  // Readers of the copy do not wait for a write, nor writes for readers.
  yield* execute("pragma journal_mode = wal; pragma synchronous = normal")
  const oneAtATime = Semaphore.makeUnsafe(1)
  const inodeOf = () => statSync(file, { throwIfNoEntry: false })?.ino
  const inode = inodeOf()
  return yield* SqlCopy.open(
    {
      ...place,
      quote: SqlCopy.quoteName,
      typeOf,
      // Node 22 takes no numbers of parameters.
      run: (statement, params = []) =>
        run(() => database.prepare(statement.replaceAll(/\$\d/g, "?")).all(...params.map(valueOf))),
      transaction: (work) =>
        Effect.acquireUseRelease(
          execute("begin immediate"),
          () => work,
          (_, exit) => (exit._tag === "Success" ? execute("commit") : Effect.ignore(execute("rollback")))
        ).pipe(Semaphore.withPermit(oneAtATime)),
      // A file that was removed can still be written, and nobody would see it.
      columnsOf: (table) =>
        run(() => (inodeOf() === inode ? database.prepare("select name from pragma_table_info(?)").all(table) : [])),
      idsIn: (param) => `(select value as id from json_each(${param}))`,
      upsert: (table, records) =>
        run(() => {
          const statement = database.prepare(upsertOf(table))
          for (const record of records) statement.run(...table.columns.map((column) => valueOf(record[column.name])))
        })
    },
    opening
  )
})

/** The target of a file, which is made if there is none. */
export const make = (file: string, place: Target.Place): Target.Target => ({
  name: place.name,
  open: (opening) => openCopy(place, file, opening)
})
