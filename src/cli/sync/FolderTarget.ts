/**
 * A copy in a folder of files, one for each resource. The copy itself is a SQLite file beside them, with the JSON of each
 * record. At the end of each round, the files of the resources that have changed follow it. A change of a file is on disk
 * when it ends: neither a kill nor a power cut leaves half of it. Changes are appended to NDJSON; Parquet is replaced.
 */
import * as fs from "node:fs"
import { dirname, join, resolve } from "node:path"
import type { DatabaseSync } from "node:sqlite"
import { DateTime, Effect, Predicate, Record } from "effect"
import { fileWriter, ParquetWriter } from "hyparquet-writer"
import { makeFolder } from "../../process/Files.ts"
import { refused } from "../Usage.ts"
import { quoteName } from "./SqlCopy.ts"
import * as Sqlite from "./SqliteTarget.ts"
import * as Target from "./Target.ts"

/** The table of the ids that have changed since the file of their resource was written. */
const changedTable = "_practice_data_sync_changed"

interface Format {
  /** The kind of target, and the extension of its files. */
  readonly kind: string
  readonly write: (file: string, database: DatabaseSync, table: Target.Table) => void
  /** Writes the rows that have changed at a position of a file, and returns its size. Without it, files are replaced. */
  readonly append?: (file: string, position: number, database: DatabaseSync, table: Target.Table) => number
}

const using = <A>(path: string, flags: string, work: (handle: number) => A): A => {
  const handle = fs.openSync(path, flags)
  try {
    return work(handle)
  } finally {
    fs.closeSync(handle)
  }
}

const charactersAtOnce = 262_144

/** Writes the lines of records, removed ones without a JSON, to a file, in place of its end. Returns the size of the file. */
const writeLines = (file: string, position: number, rows: Iterable<Readonly<Record<string, unknown>>>): number =>
  using(file, "a", (handle) => {
    fs.ftruncateSync(handle, position)
    let lines = ""
    for (const { id, record } of rows) {
      lines += Predicate.isString(record)
        ? `{"op":"upsert","record":${record}}\n`
        : `${JSON.stringify({ op: "remove", id })}\n`
      if (lines.length < charactersAtOnce) continue
      fs.writeFileSync(handle, lines)
      lines = ""
    }
    fs.writeFileSync(handle, lines)
    fs.fsyncSync(handle)
    return fs.fstatSync(handle).size
  })

/** NDJSON. The last line of a record counts. If it is compact, a changed file is replaced: each record has one line. */
export const ndjson = (compact: boolean): Format => ({
  kind: "ndjson",
  write: (file, database, { name }) => {
    writeLines(file, 0, database.prepare(`select id, record from ${quoteName(name)} order by id`).iterate())
  },
  ...(!compact && {
    append: (file: string, position, database, { name, resource }: Target.Table) => {
      const rows = database.prepare(
        `select distinct changed.id, record from ${changedTable} changed
         left join ${quoteName(name)} copied on copied.id = changed.id where resource = ?`
      )
      return writeLines(file, position, rows.iterate(resource))
    }
  })
})

type SchemaElement = ConstructorParameters<typeof ParquetWriter>[0]["schema"][number]

const elements: Readonly<Record<Exclude<Target.ColumnType, "text[]">, Partial<SchemaElement>>> = {
  text: { type: "BYTE_ARRAY", converted_type: "UTF8" },
  jsonb: { type: "BYTE_ARRAY", converted_type: "JSON" },
  // The 15 digits that a number of the API has at most.
  numeric: { type: "INT64", converted_type: "DECIMAL", precision: 15, scale: 4 },
  integer: { type: "INT32" },
  boolean: { type: "BOOLEAN" },
  timestamptz: {
    type: "INT64",
    converted_type: "TIMESTAMP_MILLIS",
    logical_type: { type: "TIMESTAMP", isAdjustedToUTC: true, unit: "MILLIS" }
  },
  date: { type: "INT32", converted_type: "DATE" }
}

/** The elements of the schema for a column. A list has three: itself, its repeated group, and the item. */
const elementsOf = ({ name, type }: Target.Column, isDouble: boolean): ReadonlyArray<SchemaElement> => {
  if (type === "text[]") {
    return [
      { name, converted_type: "LIST", num_children: 1, repetition_type: "OPTIONAL" },
      { name: "list", num_children: 1, repetition_type: "REPEATED" },
      { name: "element", ...elements.text, repetition_type: "OPTIONAL" }
    ]
  }
  // A double has every decimal of 15 digits.
  return [{ name, ...(isDouble ? ({ type: "DOUBLE" } as const) : elements[type]), repetition_type: "OPTIONAL" }]
}

/** A value of a record as the writer takes it. */
const valueOf = (type: Target.ColumnType, value: unknown): unknown =>
  typeof value === "string" && (type === "timestamptz" || type === "date")
    ? DateTime.toDateUtc(DateTime.makeUnsafe(value))
    : value

/** The rows of Parquet in memory at the same time, and in a row group. */
const rowsAtOnce = 50_000

export const parquet: Format = {
  kind: "parquet",
  write: (file, database, { columns, name: table }) => {
    // The fields that have a number with more than 4 decimals, or more than 11 digits before them.
    const doubles = database.prepare(
      `select distinct key from ${quoteName(table)}, json_each(record)
       where type in ('integer', 'real') and (value <> round(value, 4) or abs(value) >= 1e11)`
    )
    const isDouble = new Set(doubles.all().map(({ key }) => key))
    const fields = columns.flatMap((column) => elementsOf(column, isDouble.has(column.name)))
    const schema = [{ name: "root", num_children: columns.length }, ...fields]
    const writer = new ParquetWriter({ writer: fileWriter(file), schema, createdBy: "practice-data" })
    // By columns, as rows would need more memory.
    let data = columns.map((): Array<unknown> => [])
    const writeGroup = () => {
      const columnData = columns.map(({ name }, index) => ({ name, data: data[index] ?? [] }))
      void writer.write({ columnData, rowGroupSize: rowsAtOnce })
      data = columns.map(() => [])
    }
    for (const { record } of database.prepare(`select record from ${quoteName(table)} order by id`).iterate()) {
      const values: Readonly<Record<string, unknown>> = JSON.parse(String(record))
      columns.forEach(({ name, type }, index) => data[index]?.push(valueOf(type, values[name])))
      if (data[0]?.length === rowsAtOnce) writeGroup()
    }
    if (data[0]?.length !== 0) writeGroup()
    void writer.finish()
  }
}

/** The prefix of the files in a folder beside those of the resources. */
const ownPrefix = "_practice_data_sync"
const storeName = `${ownPrefix}.db`
const stateName = `${ownPrefix}.json`

const columns = ["id", "record"].map((name) => ({ name, type: "text" as const }))

/** A change with the row of its record in such a table. */
const stored = (change: Target.Change): Target.Change => {
  if (!("record" in change)) return change
  const { record, resource } = change
  return { resource, record: { id: "id" in record ? record.id : null, record: JSON.stringify(record) } }
}

/** The state of a file that took another's place: its size, and its columns. */
const replacedState = (table: Target.Table, size: number) => `${size} ${Target.shapeOf(table.columns)}`

/** The statements by which a table notes the ids that change. */
const followed = ({ name, resource }: Target.Table) =>
  ["insert", "update", "delete"].map((event) => {
    const trigger = quoteName(`_practice_data_sync_${event}_${name}`)
    return `create trigger if not exists ${trigger} after ${event} on ${quoteName(name)}
      begin insert into ${changedTable} values ('${resource}', ${event === "delete" ? "old" : "new"}.id); end;`
  })

/** Puts a new file, which is made at another path first, in the place of a file. */
const putInPlace = (file: string, make: (next: string) => void) => {
  const next = `${file}.next`
  fs.rmSync(next, { force: true })
  make(next)
  using(next, "r+", fs.fsyncSync)
  fs.renameSync(next, file)
  try {
    using(dirname(file), "r", fs.fsyncSync)
  } catch {
    // Not every system can sync a folder: there, a rename lasts once the system has written it.
  }
}

export const make = (given: string, { append, kind, write }: Format): Target.Target => {
  const folder = resolve(given)
  const name = `${kind}:${given}`
  const store = join(folder, storeName)
  const attempt = <A>(work: () => A) => Sqlite.attempt(name, work)

  /** Makes the folder if there is none. Refuses one that has files, unless they are of such a copy. */
  const takeFolder = Effect.gen(function* () {
    yield* Sqlite.refuseDangling(folder)
    const files = yield* attempt(() => {
      makeFolder(folder)
      return fs.readdirSync(folder)
    })
    const foreign = files.find((file) => !file.startsWith(".") && !file.startsWith(ownPrefix))
    if (foreign !== undefined && !files.includes(storeName))
      return yield* Target.notOurs(`file ${foreign} in ${folder}`)
    const other = files.find((file) => /\.(?:ndjson|parquet)$/.test(file) && !file.endsWith(`.${kind}`))
    if (other === undefined) return
    return yield* refused(`${folder} has a copy in another format: ${other}. Choose another target.`)
  })

  const open = Effect.fnUntraced(function* (opening: Target.OpenOptions) {
    yield* takeFolder
    const copy = yield* Sqlite.make(store, name).open({
      ...opening,
      tables: opening.tables.map((table) => ({ ...table, columns }))
    })
    const database = yield* Sqlite.openFile(name, store)
    // The state of a file is its size, with the word `appended` or its columns; null while it is replaced. It was a cursor once.
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
      const lengths = states
        .all()
        .map(({ cursor, resource }) => [String(resource), Number.parseInt(String(cursor), 10)])
      const resources = Record.map({ ...Object.fromEntries(lengths), ...pending }, (bytes) => ({ bytes }))
      putInPlace(join(folder, stateName), (next) =>
        fs.writeFileSync(next, `${JSON.stringify({ resources }, null, 2)}\n`, { flag: "wx" })
      )
    }

    const replace = (file: string, table: Target.Table, before: number) => {
      // The file is known as ours before it exists.
      record.run(table.resource, null)
      database.exec(followed(table).join(" "))
      putInPlace(file, (next) => {
        write(next, database, table)
        // Whoever reads the old file or the new one finds all of it.
        publish({ [table.resource]: Math.max(before, fs.statSync(next).size) })
      })
      record.run(table.resource, replacedState(table, fs.statSync(file).size))
    }

    const follow = Effect.fnUntraced(function* (table: Target.Table) {
      const file = join(folder, `${table.name}.${kind}`)
      const size = fs.statSync(file, { throwIfNoEntry: false })?.size
      const { cursor, isChanged, isFollowed } = (yield* attempt(() => stateOf.get(table.name, table.resource))) ?? {}
      if (size !== undefined && cursor === undefined) return yield* Target.notOurs(`file ${file}`)
      yield* attempt(() => {
        const bytes = Number.parseInt(String(cursor), 10)
        const isWhole = size === bytes && (append !== undefined || cursor === replacedState(table, bytes))
        if (isFollowed === 1 && isChanged === 0 && isWhole) return
        if (append !== undefined && isFollowed === 1 && size !== undefined && size >= bytes) {
          record.run(table.resource, `${append(file, bytes, database, table)} appended`)
        } else replace(file, table, size ?? 0)
        // Changes that a kill leaves here are written once more.
        forget.run(table.resource)
      })
    })

    return {
      ...copy,
      apply: (page: Target.ChangePage, requestedAt: DateTime.Utc) =>
        copy.apply({ ...page, body: page.body.map(stored) }, requestedAt),
      finish: Effect.andThen(Effect.forEach(opening.tables, follow, { discard: true }), attempt(publish))
    }
  })

  return { name, open }
}
