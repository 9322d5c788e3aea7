/**
 * A copy in a folder of files, one for each resource. The copy itself is a SQLite file beside them, with the JSON of each
 * record. At the end of each round, the files of the resources that have changed follow it.
 */
import { readdirSync, statSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import type { DatabaseSync } from "node:sqlite"
import { Effect, Record } from "effect"
import * as Files from "./Files.ts"
import { quoteName } from "./SqlCopy.ts"
import * as Sqlite from "./SqliteTarget.ts"
import type { Table } from "./Table.ts"
import * as Target from "./Target.ts"
import { Refused } from "../Usage.ts"

/** The table of the ids that have changed since the file of their resource was written. */
export const changedTable = "_practice_data_sync_changed"

export interface Format {
  /** The kind of target, and the extension of its files. */
  readonly kind: string
  /** Writes all rows to a file. */
  readonly write: (file: string, database: DatabaseSync, table: Table) => void
  /** Writes the rows that have changed at a position of a file, and returns its size. Without it, files are replaced. */
  readonly append?: (file: string, position: number, database: DatabaseSync, table: Table) => number
}

/** The table of a resource in the SQLite copy. */
const storedTable = ({ name, resource }: Table): Table => ({
  name,
  resource,
  columns: [
    { name: "id", type: "text" },
    { name: "record", type: "text" }
  ]
})

/** A record as a row of that table. */
const rowOf = (record: object) => ({ id: "id" in record ? record.id : null, record: JSON.stringify(record) })

/** The statements by which a table notes the ids that change. */
const followed = ({ name, resource }: Table) =>
  [
    ["insert", "new"],
    ["update", "new"],
    ["delete", "old"]
  ]
    .map(
      ([event, row]) =>
        `create trigger if not exists ${quoteName(`_practice_data_sync_${event}_${name}`)} after ${event} on ${quoteName(name)}
         begin insert into ${changedTable} values ('${resource}', ${row}.id); end;`
    )
    .join(" ")

/** The target of a folder, which is made if there is none. */
export const make = (given: string, { append, kind, write }: Format): Target.Target => {
  const folder = resolve(given)
  const name = `${kind}:${given}`
  const storeName = `${Files.ownPrefix}.db`
  const store = join(folder, storeName)
  const copyTarget = Sqlite.make(store, name)
  const attempt = <A>(work: () => A) => Files.attempt(name, work)

  const open = Effect.fnUntraced(function* (opening: Target.OpenOptions) {
    yield* Files.takeFolder(name, folder, storeName)
    const files = yield* attempt(() => readdirSync(folder))
    const other = files.find((file) => /\.(?:ndjson|parquet)$/.test(file) && !file.endsWith(`.${kind}`))
    if (other !== undefined) {
      return yield* new Refused({
        message: `${folder} has a copy of another kind: ${other}. Choose another target.`
      })
    }
    const copy = yield* copyTarget.open({ ...opening, tables: opening.tables.map(storedTable) })
    const database = yield* Files.openSqlite(name, store)
    // The state of a file is its size, with a word if it was appended to; null while it is replaced. It was a cursor once.
    yield* attempt(() =>
      database.exec(`pragma synchronous = full;
        create table if not exists _practice_data_sync_files (resource text primary key, cursor text);
        create table if not exists ${changedTable} (resource text, id text)`)
    )
    const states = database.prepare("select resource, cursor from _practice_data_sync_files")
    const stateOf = database.prepare(
      `select cursor, exists (select 1 from ${changedTable} changed where changed.resource = files.resource) as isChanged,
         exists (select 1 from sqlite_master where type = 'trigger' and tbl_name = ?) as isFollowed
       from _practice_data_sync_files files where resource = ?`
    )
    const record = database.prepare("insert or replace into _practice_data_sync_files values (?, ?)")
    const forget = database.prepare(`delete from ${changedTable} where resource = ?`)

    /** Writes the sizes of the files for those who read them, with one of a file that takes another's place. */
    const publish = (pending: Readonly<Record<string, number>> = {}) => {
      const found = states.all().map(({ cursor, resource }) => [String(resource), Number.parseInt(String(cursor), 10)])
      const resources = Record.map({ ...Object.fromEntries(found), ...pending }, (bytes) => ({ bytes }))
      Files.replace(join(folder, `${Files.ownPrefix}.json`), (next) =>
        writeFileSync(next, `${JSON.stringify({ resources }, null, 2)}\n`, { flag: "wx" })
      )
    }

    const replace = (file: string, table: Table, before: number) => {
      // The file is known as ours before it exists.
      record.run(table.resource, null)
      database.exec(followed(table))
      Files.replace(file, (next) => {
        write(next, database, table)
        // Whoever reads the old file or the new one finds all of it.
        publish({ [table.resource]: Math.max(before, statSync(next).size) })
      })
      record.run(table.resource, `${statSync(file).size}`)
    }

    const follow = Effect.fnUntraced(function* (table: Table) {
      const file = join(folder, `${table.name}.${kind}`)
      const size = statSync(file, { throwIfNoEntry: false })?.size
      const { cursor, isChanged, isFollowed } = (yield* attempt(() => stateOf.get(table.name, table.resource))) ?? {}
      if (size !== undefined && cursor === undefined) return yield* Target.notOurs(`file ${file}`)
      yield* attempt(() => {
        const bytes = Number.parseInt(String(cursor), 10)
        const isWhole = size === bytes && (append !== undefined || cursor === `${size}`)
        if (isFollowed === 1 && isChanged === 0 && isWhole) return
        if (append !== undefined && isFollowed === 1 && size !== undefined && size >= bytes) {
          record.run(table.resource, `${append(file, bytes, database, table)} appended`)
        } else replace(file, table, size ?? 0)
        // Changes that a kill leaves here are written once more.
        forget.run(table.resource)
      })
    })

    const stored = (change: Target.Change) =>
      "record" in change ? { ...change, record: rowOf(change.record) } : change
    const followAll = Effect.forEach(opening.tables, follow, { discard: true })
    return {
      ...copy,
      apply: (page: Target.Page, wanted: ReadonlyArray<string>) =>
        copy.apply({ ...page, body: page.body.map(stored) }, wanted),
      finish: Effect.andThen(followAll, attempt(publish))
    }
  })

  return { name, open }
}
