/** Reads copies as their users do, and renders each row as the API's JSON of the record. Nothing here is from the sources. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync, type SQLOutputValue } from "node:sqlite"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Predicate, Record } from "effect"
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from "hyparquet"
import { DEFAULT_PARSERS } from "hyparquet/src/convert.js"
import { resourceOf } from "../../../support/contract/Contract.ts"
import type { FieldType } from "../../../support/contract/Resource.ts"

/** The JSON of each record, by its id. */
export type Rows = ReadonlyMap<string, string>

export const tableOf = (resource: string) =>
  resource === "organization" ? "organizations" : resource.replaceAll("-", "_")

const fieldsOf = (resource: string) => Object.entries(resourceOf(resource).fields)

const byId = (records: ReadonlyArray<object>): Rows =>
  new Map(
    records.map((record) => [Predicate.hasProperty(record, "id") ? String(record.id) : "", JSON.stringify(record)])
  )

const portions = ["to_Platform", "to_Processor", "to_Clinic"]

/** The value of a field, by its type, from its column. One of another type is an error of the statement. */
const expressions: Readonly<Record<string, (column: string) => string>> = {
  "date-time": (column) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
  date: (column) => `to_char(${column} + interval '0 s', 'YYYY-MM-DD')`,
  number: (column) => `trim_scale(${column})`,
  integer: (column) => `${column} + 0::int4`,
  boolean: (column) => `(${column} and true)`,
  strings: (column) => `case when ${column} is not null then array_cat(${column}, '{}'::text[]) end`,
  split: (column) => `json_build_object(${portions.map((name) => `'${name}', ${column} -> '${name}'`).join(", ")})`
}

const expressionOf = (name: string, type: FieldType) => expressions[type.replace("!", "")]?.(`"${name}"`) ?? `"${name}"`

/** The rows of a table in a schema of a Postgres. */
export const inPostgres = Effect.fnUntraced(function* (sql: PgClient.PgClient, schema: string, resource: string) {
  const values = fieldsOf(resource).map(([name, type]) => `'${name}', ${expressionOf(name, type)}`)
  const rows = yield* sql.unsafe<{ record: string }>(
    `select json_build_object(${values.join(", ")})::text as record from "${schema}"."${tableOf(resource)}"`
  )
  return byId(rows.map(({ record }) => JSON.parse(record)))
})

const fromSqlite = (value: SQLOutputValue | undefined, type: FieldType): unknown => {
  if (type.startsWith("boolean")) return value === null ? null : value === 1
  return typeof value === "string" && /^(strings|split)/.test(type) ? JSON.parse(value) : value
}

/** The rows of a query in a SQLite file. */
export const query = (file: string, statement: string) => {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const prepared = database.prepare(statement)
    // A whole decimal may be larger than a number is exact.
    prepared.setReadBigInts(true)
    return prepared.all().map((row) => Record.map(row, (value) => (typeof value === "bigint" ? Number(value) : value)))
  } finally {
    database.close()
  }
}

/** The rows of a table in a SQLite file. */
export const inSqlite = (file: string, resource: string): Rows =>
  byId(
    query(file, `select * from "${tableOf(resource)}"`).map((row) =>
      Object.fromEntries(fieldsOf(resource).map(([name, type]) => [name, fromSqlite(row[name], type)]))
    )
  )

// Its own one takes U+FEFF from the beginning of a text.
const parsers = {
  ...DEFAULT_PARSERS,
  stringFromBytes: (bytes: Uint8Array | undefined) => (bytes === undefined ? undefined : Buffer.from(bytes).toString())
}

const fromParquet = (value: unknown, type: FieldType): unknown => {
  // It reads a decimal as the nearest double of a product.
  if (typeof value === "number") return Number(value.toPrecision(15))
  // A list of no value is undefined.
  if (!(value instanceof Date)) return value ?? null
  return type.startsWith("date-time") ? value.toISOString() : value.toISOString().slice(0, 10)
}

const parquetFile = (folder: string, resource: string) =>
  asyncBufferFromFile(join(folder, `${tableOf(resource)}.parquet`))

/** The type of a column of numbers in a Parquet file, as SQL names it. */
export const typeInParquet = (folder: string, resource: string, column: string) =>
  parquetFile(folder, resource)
    .then((file) => parquetMetadataAsync(file))
    .then(({ schema }) => schema.find(({ name }) => name === column))
    .then((found) =>
      found?.converted_type ? `${found.converted_type}(${found.precision}, ${found.scale})` : found?.type
    )

/** The rows of a Parquet file. */
export const inParquet = (folder: string, resource: string): Promise<Rows> =>
  parquetFile(folder, resource)
    .then((file) => parquetReadObjects({ file, parsers }))
    .then((rows) =>
      byId(
        rows.map((row) =>
          Object.fromEntries(fieldsOf(resource).map(([name, type]) => [name, fromParquet(row[name], type)]))
        )
      )
    )

/** The state that a folder keeps. */
export const stateIn = (folder: string) => JSON.parse(readFileSync(join(folder, "_practice_data_sync.json"), "utf8"))

/** The records that the changes in a file make, as far as the folder's state says that they count. */
export const inFolder = (folder: string, resource: string): Rows => {
  const { bytes: whole } = stateIn(folder).resources[resource]
  const bytes = readFileSync(join(folder, `${tableOf(resource)}.ndjson`)).subarray(0, whole)
  const rows = new Map<string, string>()
  for (const line of bytes.toString().split("\n").slice(0, -1)) {
    const change = JSON.parse(line)
    if (change.op === "remove") rows.delete(change.id)
    else rows.set(change.record.id, JSON.stringify(change.record))
  }
  return rows
}
