/** A copy in a folder of Parquet files, which are replaced: they cannot be changed in place. */
import type { DatabaseSync } from "node:sqlite"
import { DateTime } from "effect"
import { fileWriter, ParquetWriter } from "hyparquet-writer"
import * as FolderTarget from "./FolderTarget.ts"
import { quoteName } from "./SqlCopy.ts"
import type { Column, ColumnType, Table } from "./Table.ts"

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

/** The names of the fields that have a number with more than 4 decimals, or more than 11 digits before them. */
const findDoubles = (database: DatabaseSync, { name }: Table) => {
  const found = database.prepare(
    `select distinct key from ${quoteName(name)}, json_each(record)
     where type in ('integer', 'real') and (value <> round(value, 4) or abs(value) >= 1e11)`
  )
  return new Set(found.all().map(({ key }) => key))
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

/** The rows in memory at the same time, and in a row group. */
const rowsAtOnce = 50_000

const write = (file: string, database: DatabaseSync, table: Table) => {
  const { columns } = table
  const doubles = findDoubles(database, table)
  const fields = columns.flatMap((column) => elementsOf(column, doubles.has(column.name)))
  const schema = [{ name: "root", num_children: columns.length }, ...fields]
  const writer = new ParquetWriter({ writer: fileWriter(file), schema, createdBy: "practice-data" })
  // By columns, as rows would need more memory.
  let data = columns.map((): Array<unknown> => [])
  const writeGroup = () => {
    const columnData = columns.map(({ name }, index) => ({ name, data: data[index] ?? [] }))
    void writer.write({ columnData, rowGroupSize: rowsAtOnce })
    data = columns.map(() => [])
  }
  for (const { record } of database.prepare(`select record from ${quoteName(table.name)} order by id`).iterate()) {
    const values: Readonly<Record<string, unknown>> = JSON.parse(String(record))
    columns.forEach(({ name, type }, index) => data[index]?.push(valueOf(type, values[name])))
    if (data[0]?.length === rowsAtOnce) writeGroup()
  }
  if (data[0]?.length !== 0) writeGroup()
  void writer.finish()
}

/** The target of a folder, which is made if there is none. */
export const make = (given: string) => FolderTarget.make(given, { kind: "parquet", write })
