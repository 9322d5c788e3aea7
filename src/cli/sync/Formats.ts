/** The files of a copy in a folder: NDJSON, to which changes are appended, and Parquet, which cannot be changed in place. */
import * as fs from "node:fs"
import type { DatabaseSync } from "node:sqlite"
import { DateTime, Predicate } from "effect"
import { fileWriter, ParquetWriter } from "hyparquet-writer"
import { quoteName } from "./SqlCopy.ts"
import type { Column, ColumnType, Table } from "./Target.ts"

/** The table of the ids that have changed since the file of their resource was written. */
export const changedTable = "_practice_data_sync_changed"

export interface Format {
  /** The kind of target, and the extension of its files. */
  readonly kind: string
  readonly write: (file: string, database: DatabaseSync, table: Table) => void
  /** Writes the rows that have changed at a position of a file, and returns its size. Without it, files are replaced. */
  readonly append?: (file: string, position: number, database: DatabaseSync, table: Table) => number
}

export const using = <A>(path: string, flags: string, work: (handle: number) => A): A => {
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
    append: (file: string, position, database, { name, resource }: Table) => {
      const rows = database.prepare(
        `select distinct changed.id, record from ${changedTable} changed
         left join ${quoteName(name)} copied on copied.id = changed.id where resource = ?`
      )
      return writeLines(file, position, rows.iterate(resource))
    }
  })
})

type SchemaElement = ConstructorParameters<typeof ParquetWriter>[0]["schema"][number]

const elements: Readonly<Record<Exclude<ColumnType, "text[]">, Partial<SchemaElement>>> = {
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
const elementsOf = ({ name, type }: Column, isDouble: boolean): ReadonlyArray<SchemaElement> => {
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
const valueOf = (type: ColumnType, value: unknown): unknown =>
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
