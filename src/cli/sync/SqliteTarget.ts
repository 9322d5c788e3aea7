/** A copy in a SQLite file. */
import { existsSync, lstatSync, statSync } from "node:fs"
import { Effect, Predicate } from "effect"
import * as Failure from "../../process/Failure.ts"
import * as Files from "../../process/Files.ts"
import { type Failed, Refused, refused, Unavailable } from "../Usage.ts"
import * as SqlCopy from "./SqlCopy.ts"
import * as Target from "./Target.ts"

/** The system's codes for SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL and SQLITE_CANTOPEN. */
const codes: Readonly<Record<number, string>> = { 8: "EACCES", 10: "EIO", 13: "ENOSPC", 14: "EACCES" }

// The disk is full or fails, or a file was removed, which is made again when the target is opened.
const temporary = new Set<unknown>(["ENOSPC", "EDQUOT", "EIO", "ENOENT"])

const failureOf = (target: string, cause: unknown): Failed => {
  if (Files.isLocked(cause)) return new Unavailable({ message: `${target} is locked by another program` })
  // The last byte of an extended result code.
  const code = Predicate.hasProperty(cause, "errcode") ? codes[Number(cause.errcode) & 0xff] : undefined
  const reason = code === undefined ? cause : { code }
  const isTemporary = Predicate.hasProperty(reason, "code") && temporary.has(reason.code)
  const Class = isTemporary ? Unavailable : Refused
  return new Class({ message: `Cannot use ${target}: ${Failure.reasonOfFile(reason)}` })
}

/** Runs statements of SQLite. Failures are those of the target. */
export const attempt = <A>(target: string, work: () => A): Effect.Effect<A, Failed> =>
  Effect.try({ try: work, catch: (cause) => failureOf(target, cause) })

/** Refuses a symbolic link to nothing, which would make a file in another place. */
const refuseDangling = (path: string) =>
  Effect.try(() => lstatSync(path).isSymbolicLink() && !existsSync(path)).pipe(
    // A path that cannot be examined cannot be made either.
    Effect.orElseSucceed(() => false),
    Effect.filterOrFail(
      (isDangling) => !isDangling,
      () => refused(`${path} is a broken symbolic link.`)
    )
  )

export const openFile = Effect.fnUntraced(function* (target: string, file: string) {
  const { DatabaseSync } = yield* Files.sqlite
  yield* refuseDangling(file)
  return yield* Effect.acquireRelease(
    attempt(target, () => new DatabaseSync(file, { timeout: 10_000 })),
    (database) => Effect.sync(() => database.close())
  )
})

/** A decimal that is whole is an integer, and any other a double, which has every decimal of 15 digits. */
const types = new Map<Target.ColumnType, string>([
  ["numeric", "decimal"],
  ["integer", "integer"],
  ["boolean", "integer"]
])

export const make = (file: string, name: string, softDelete: boolean): Target.Target => {
  const inodeOf = () => statSync(file, { throwIfNoEntry: false })?.ino

  const open = Effect.fnUntraced(function* (opening: Target.OpenOptions) {
    const lock = `${file}.sync-lock`
    yield* refuseDangling(lock)
    const isTaken = yield* Effect.mapError(Files.takeLock(lock), ({ cause }) => failureOf(name, cause))
    if (!isTaken) return yield* Target.inUse(name)
    const database = yield* openFile(name, file)
    // Readers of the copy do not wait for a write, nor writes for readers.
    yield* attempt(name, () => database.exec("pragma journal_mode = wal; pragma synchronous = normal"))
    const inode = inodeOf()
    // Node 22 takes no numbers of parameters.
    const run: SqlCopy.Dialect["run"] = (statement, params = []) =>
      attempt(name, () => database.prepare(statement.replaceAll(/\$\d/g, "?")).all(...params))
    return yield* SqlCopy.open(
      {
        name,
        quote: SqlCopy.quoteName,
        typeOf: (type) => types.get(type) ?? "text",
        position: "integer primary key",
        begin: () => "begin immediate",
        empty: "delete from",
        run,
        // A file that was removed can still be written, and nobody would see it.
        columnsOf: (table) =>
          Effect.flatMap(attempt(name, inodeOf), (current) =>
            current === inode ? run("select name from pragma_table_info($1)", [table]) : Effect.succeed([])
          ),
        append: (table, columns, rows) => {
          const into = `${SqlCopy.quoteName(table)} (${SqlCopy.namesOf(columns)})`
          // Lists and objects are kept as JSON, booleans as 0 and 1.
          const values = columns.map((column) => `json_extract(value, '$.${SqlCopy.quoteName(column.name)}')`)
          return run(`insert into ${into} select ${values.join(", ")} from json_each($1)`, [JSON.stringify(rows)])
        },
        softDelete
      },
      opening
    )
  })

  return { name, open }
}
