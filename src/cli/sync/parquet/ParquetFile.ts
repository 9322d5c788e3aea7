/** Writes a table as a Parquet file. */
import type { SQLOutputValue } from "node:sqlite"
import { DateTime } from "effect"
import { fileWriter, ParquetWriter } from "hyparquet-writer"
import type { ColumnType, Table } from "../Table.ts"

/** How many rows are in memory at the same time, and in a row group. */
export const rowsAtOnce = 50_000

type SchemaElement = ConstructorParameters<typeof ParquetWriter>[0]["schema"][number]

const optional = { repetition_type: "OPTIONAL" } as const

/** The elements of the schema for a column. A list has three: itself, its repeated group, and the item. */
const elementsOf = (name: string, type: ColumnType): ReadonlyArray<SchemaElement> => {
  switch (type) {
    case "text":
      return [{ name, type: "BYTE_ARRAY", converted_type: "UTF8", ...optional }]
    case "jsonb":
      return [{ name, type: "BYTE_ARRAY", converted_type: "JSON", ...optional }]
    // A double has every decimal of 15 digits.
    case "numeric":
      return [{ name, type: "DOUBLE", ...optional }]
    case "integer":
      return [{ name, type: "INT32", ...optional }]
    case "boolean":
      return [{ name, type: "BOOLEAN", ...optional }]
    case "timestamptz":
      return [
        {
          name,
          type: "INT64",
          converted_type: "TIMESTAMP_MILLIS",
          logical_type: { type: "TIMESTAMP", isAdjustedToUTC: true, unit: "MILLIS" },
          ...optional
        }
      ]
    case "date":
      return [{ name, type: "INT32", converted_type: "DATE", ...optional }]
    case "text[]":
      return [
        { name, converted_type: "LIST", num_children: 1, ...optional },
        { name: "list", num_children: 1, repetition_type: "REPEATED" },
        { name: "element", type: "BYTE_ARRAY", converted_type: "UTF8", ...optional }
      ]
  }
}

/** A value of a SQLite copy as the writer takes it. */
const valueOf = (type: ColumnType, value: SQLOutputValue | undefined): unknown => {
  if (typeof value === "number") return type === "boolean" ? value === 1 : value
  if (typeof value !== "string") return null
  switch (type) {
    case "timestamptz":
    case "date":
      return DateTime.toDateUtc(DateTime.makeUnsafe(value))
    case "text[]":
    case "jsonb":
      return JSON.parse(value)
    default:
      return value
  }
}

/** Writes rows of a SQLite copy to a new file. */
export const write = (
  file: string,
  { columns }: Table,
  rows: Iterator<Readonly<Record<string, SQLOutputValue>>>
): void => {
  const writer = new ParquetWriter({
    writer: fileWriter(file),
    schema: [
      { name: "root", num_children: columns.length },
      ...columns.flatMap(({ name, type }) => elementsOf(name, type))
    ],
    createdBy: "practice-data"
  })
  for (;;) {
    const data = columns.map(({ name }): { name: string; data: Array<unknown> } => ({ name, data: [] }))
    let count = 0
    for (let row = rows.next(); row.done !== true; row = rows.next()) {
      columns.forEach(({ name, type }, index) => data[index]?.data.push(valueOf(type, row.value[name])))
      if (++count === rowsAtOnce) break
    }
    if (count > 0) void writer.write({ columnData: data, rowGroupSize: rowsAtOnce })
    if (count < rowsAtOnce) break
  }
  void writer.finish()
}
