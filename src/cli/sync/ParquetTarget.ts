/** A copy in a folder of Parquet files, which are replaced: they cannot be changed in place. */
import type { DatabaseSync, SQLOutputValue } from "node:sqlite"
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

/** A row with 1 for each column with a number that has more than 4 decimals, or more than 11 digits before them. */
const findDoubles = (database: DatabaseSync, { columns, name }: Table) => {
  const numbers = columns.filter(({ type }) => type === "numeric").map((column) => quoteName(column.name))
  const tests = numbers.map((one) => `, max(${one} <> round(${one}, 4) or abs(${one}) >= 1e11) as ${one}`)
  return database.prepare(`select count(*)${tests.join("")} from ${quoteName(name)}`).get()
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

/** A value of a SQLite copy as the writer takes it. */
const valueOf = (type: ColumnType, value: SQLOutputValue | undefined): unknown => {
  if (typeof value === "bigint") return type === "boolean" ? value === 1n : Number(value)
  if (typeof value === "number") return value
  if (typeof value !== "string") return null
  if (type === "timestamptz" || type === "date") return DateTime.toDateUtc(DateTime.makeUnsafe(value))
  return type === "text[]" || type === "jsonb" ? JSON.parse(value) : value
}

/** The rows in memory at the same time, and in a row group. */
const rowsAtOnce = 50_000

const write = (file: string, database: DatabaseSync, table: Table) => {
  const { columns } = table
  const doubles = findDoubles(database, table)
  const fields = columns.flatMap((column) => elementsOf(column, doubles?.[column.name] === 1))
  const schema = [{ name: "root", num_children: columns.length }, ...fields]
  const writer = new ParquetWriter({ writer: fileWriter(file), schema, createdBy: "practice-data" })
  // By columns, as rows would need more memory.
  let data = columns.map((): Array<unknown> => [])
  const writeGroup = () => {
    const columnData = columns.map(({ name }, index) => ({ name, data: data[index] ?? [] }))
    void writer.write({ columnData, rowGroupSize: rowsAtOnce })
    data = columns.map(() => [])
  }
  const select = database.prepare(`select * from ${quoteName(table.name)} order by id`)
  // An integer of SQLite may be one that no number is.
  select.setReadBigInts(true)
  for (const row of select.iterate()) {
    columns.forEach(({ name, type }, index) => data[index]?.push(valueOf(type, row[name])))
    if (data[0]?.length === rowsAtOnce) writeGroup()
  }
  if (data[0]?.length !== 0) writeGroup()
  void writer.finish()
}

/** The target of a folder, which is made if there is none. */
export const make = (given: string) =>
  FolderTarget.make(given, { kind: "parquet", tableOf: (table) => table, rowOf: (record) => record, write })
