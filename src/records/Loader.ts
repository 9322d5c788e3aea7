/**
 * Writes records into their tables: for the demo data and for tests. The service itself never writes a record; whoever
 * feeds the tables uses plain SQL, COPY or replication.
 */
import type { PgClient } from "@effect/sql-pg"
import { Array, Effect, Schema } from "effect"
import type { Resource, Stored } from "../api/records/Resource.ts"
import { rowsOf } from "./Row.ts"

/** Inserts the records of a resource. What a record leaves out gets the column's default. */
export const load = Effect.fnUntraced(function* <R extends Resource>(
  sql: PgClient.PgClient,
  resource: R,
  records: ReadonlyArray<Stored<R>>
) {
  const stored = yield* sql<{ name: string }>`
    select attname as name from pg_attribute
    where attrelid = ${resource.table}::regclass and attnum > 0 and not attisdropped and attgenerated = ''`
  const rows = (yield* rowsOf(resource, records)).map(({ columns, organization }) => ({
    ...columns,
    organization_id: organization
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
