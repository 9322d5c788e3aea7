/** Reads copies as their users do, and renders each row as the API's JSON of the record. Nothing here is from the sources. */
import { DatabaseSync, type SQLOutputValue } from "node:sqlite"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Predicate, Record } from "effect"
import { resourceOf } from "../../../contract/Contract.ts"
import type { FieldType } from "../../../contract/Resource.ts"

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
