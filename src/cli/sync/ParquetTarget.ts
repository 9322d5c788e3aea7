/**
 * A copy in a folder of Parquet files, one for each resource. Parquet cannot be changed in place, so the copy itself is a
 * SQLite file beside them; each time that all have been read, the files of the resources that have changed are written anew.
 */
import { Effect, FileSystem, Path } from "effect"
import * as Files from "./ndjson/Files.ts"
import * as ParquetFile from "./parquet/ParquetFile.ts"
import * as Sqlite from "./Sqlite.ts"
import { quoteName } from "./SqlCopy.ts"
import * as SqliteTarget from "./SqliteTarget.ts"
import type { Table } from "./Table.ts"
import * as Target from "./Target.ts"

const storeName = "_practice_data_sync.db"
const elsewhere = "another folder"

/** The target of a folder, which is made if there is none. */
export const make = Effect.fnUntraced(function* (given: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = path.resolve(given)
  const name = `parquet:${given}`
  const store = path.join(folder, storeName)
  const copyTarget = SqliteTarget.make({ file: store, name, elsewhere })

  const takeFolder = Effect.gen(function* () {
    yield* Files.refuseDangling(folder)
    yield* fs.makeDirectory(folder, { recursive: true })
    const others = (yield* fs.readDirectory(folder)).filter(
      (found) => !found.startsWith(".") && !found.startsWith(storeName)
    )
    if (others.length > 0 && !(yield* fs.exists(store))) {
      return yield* new Target.TargetRefused({
        message: `The folder ${folder} has files that practice-data has not made, such as ${others[0]}. Choose ${elsewhere}.`
      })
    }
  })

  const open = Effect.fnUntraced(function* (opening: Target.OpenOptions) {
    yield* Files.guarded(name, takeFolder)
    const copy = yield* copyTarget.open(opening)
    const database = yield* Sqlite.open(name, store)
    // For which cursor the file of a resource was written.
    yield* Sqlite.attempt(name, () =>
      database.exec("create table if not exists _practice_data_sync_files (resource text primary key, cursor text)")
    )

    const writeFile = Effect.fnUntraced(function* (table: Table) {
      const file = path.join(folder, `${table.name}.parquet`)
      const { cursor, load } = yield* copy.stateOf(table)
      const [written] = yield* Sqlite.attempt(name, () =>
        database.prepare("select cursor from _practice_data_sync_files where resource = ?").all(table.resource)
      )
      const isThere = yield* fs.exists(file)
      if (isThere && written === undefined) {
        return yield* new Target.TargetRefused({
          message: `There is a file ${file} that practice-data has not made. Choose ${elsewhere}.`
        })
      }
      if (load !== "done" || cursor === undefined || (isThere && written?.["cursor"] === cursor)) return
      const next = `${file}.next`
      yield* fs.remove(next, { force: true })
      yield* Sqlite.attempt(name, () =>
        ParquetFile.write(next, table, database.prepare(`select * from ${quoteName(table.name)} order by id`).iterate())
      )
      yield* Files.sync(next)
      const note = (at: string | null) =>
        Sqlite.attempt(name, () =>
          database.prepare("insert or replace into _practice_data_sync_files values (?, ?)").run(table.resource, at)
        )
      // The file is known as ours before it is there.
      yield* note(null)
      yield* Files.replace(next, file)
      yield* note(cursor)
    })

    const finished: Target.Copy = {
      ...copy,
      finish: Effect.forEach(opening.tables, (table) => Files.guarded(name, writeFile(table)), { discard: true }).pipe(
        Effect.provideService(FileSystem.FileSystem, fs),
        Effect.provideService(Path.Path, path)
      )
    }
    return finished
  })

  const target: Target.Target = { name, open }
  return target
})
