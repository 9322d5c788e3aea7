/**
 * Writes records into their tables: for the demo data and for tests. The service itself never writes a record; whoever
 * feeds the tables uses plain SQL, COPY or replication.
 */
import type { PgClient } from "@effect/sql-pg"
import { Array, Effect, Predicate, Schema } from "effect"
import type * as Field from "../api/records/Field.ts"
import { type Filters, type Resource, type Row, rowsOf, type Stored } from "../api/records/Resource.ts"

/** The column of a field: its name in snake case. */
export const columnOf = (field: string) => field.replace(/([a-z])([A-Z])/g, "$1_$2").toLowerCase()

const flatten = (values: Row["values"], prefix = ""): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => {
      const column = prefix + columnOf(name)
      return Predicate.isObject(value) && !Array.isArray(value)
        ? Object.entries(flatten({ ...value }, `${column}_`))
        : [[column, value] as const]
    })
  )

/** Inserts the records of a resource. What a record leaves out gets the column's default. */
export const load = Effect.fnUntraced(function* <
  Name extends string,
  Fields extends Field.Fields,
  Hidden extends Field.Fields,
  F extends Filters
>(sql: PgClient.PgClient, resource: Resource<Name, Fields, Hidden, F>, records: ReadonlyArray<Stored<Fields, Hidden>>) {
  const stored = yield* sql<{ name: string }>`
    select attname as name from pg_attribute
    where attrelid = ${resource.table}::regclass and attnum > 0 and not attisdropped and attgenerated = ''`
  const rows = (yield* rowsOf(resource, records)).map((row) => ({
    ...flatten(row.values),
    organization_id: row.organization
  }))
  const columnsOf = (row: object) =>
    stored
      .map(({ name }) => name)
      .filter((name) => name in row)
      .join(", ")
  yield* Effect.forEach(Object.entries(Array.groupBy(rows, columnsOf)), ([columns, group]) =>
    Effect.flatMap(Effect.orDie(Schema.encodeEffect(Schema.fromJsonString(Schema.Unknown))(group)), (json) =>
      sql.unsafe(
        `insert into ${resource.table} (${columns})
         select ${columns} from json_populate_recordset(null::${resource.table}, $1::json)`,
        [json]
      )
    )
  )
})
