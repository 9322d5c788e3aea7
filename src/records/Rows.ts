/** Stored records as rows, for the fake, the demo data and tests. The service itself never writes a record. */
import type { PgClient } from "@effect/sql-pg"
import { Array, Effect, Predicate, Schema } from "effect"
import * as JsonSchemas from "../api/openapi/JsonSchemas.ts"
import * as Field from "../api/records/Field.ts"
import type { Filters, Resource, Stored } from "../api/records/Resource.ts"
import { fromText, type Json } from "../database/Columns.ts"

/** Every value of a record, hidden ones included, by its column. Values that the record leaves out are absent. */
export type Columns = Readonly<Record<string, unknown>>

/** A stored record in the JSON forms of its values. */
export interface Row {
  readonly organization: string
  readonly id: string
  readonly columns: Columns
  readonly record: Json
}

/** An object in a record has a column for each of its values: `payment_split.to_Clinic` is `payment_split_to_clinic`. */
const toColumns = (values: object, prefix = ""): Columns =>
  Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => {
      const column = prefix + Field.columnName(name)
      return Predicate.isObject(value) && !Array.isArray(value)
        ? Object.entries(toColumns(value, `${column}_`))
        : [[column, value] as const]
    })
  )

const encodeJson = Schema.encodeEffect(Schema.fromJsonString(Schema.Unknown))

/** The rows of stored records. A record that does not match its schema is a defect. */
export const toRows = Effect.fnUntraced(function* <R extends Resource>(resource: R, records: ReadonlyArray<Stored<R>>) {
  const encodeRecord = Schema.encodeUnknownEffect(resource.record)
  const encodeHidden = Schema.encodeUnknownEffect(Schema.Struct(resource.hidden))
  const rows: Array<Row> = []
  for (const stored of records) {
    const record = yield* encodeRecord(stored)
    const { organization_id: organization } = stored
    const columns = toColumns({ organization_id: organization, ...(yield* encodeHidden(stored)), ...record })
    rows.push({ organization, id: String(columns["id"]), columns, record: fromText(yield* encodeJson(record)) })
  }
  return rows
}, Effect.orDie)

/** Runs statements that write records with the times that they have. The first statement has Citus pass the setting on. */
export const keepingTimes = <A, E, R>(sql: PgClient.PgClient, statements: Effect.Effect<A, E, R>) =>
  sql.withTransaction(
    sql`set local citus.propagate_set_commands = local`.pipe(
      Effect.andThen(sql`set local practice_data.keep_times = on`),
      Effect.andThen(statements)
    )
  )

/** Inserts the records of a resource with their times. Values that a record leaves out get the column's default. */
export const load = Effect.fnUntraced(function* <R extends Resource>(
  sql: PgClient.PgClient,
  resource: R,
  records: ReadonlyArray<Stored<R>>
) {
  const { table } = resource
  const stored = yield* sql<{ name: string }>`
    select attname as name from pg_attribute
    where attrelid = ${table}::regclass and attnum > 0 and not attisdropped`
  const rows = (yield* toRows(resource, records)).map(({ columns }) => columns)
  const columnsIn = (row: Columns) => stored.flatMap(({ name }) => (name in row ? [name] : [])).join(", ")
  for (const [columns, group] of Object.entries(Array.groupBy(rows, columnsIn))) {
    const insert = sql.unsafe(
      `insert into ${table} (${columns}) select ${columns} from json_populate_recordset(null::${table}, $1::json)`,
      [yield* Effect.orDie(encodeJson(group))]
    )
    yield* keepingTimes(sql, insert)
  }
})

const exampleRecord = <Fields extends Field.Fields>(fields: Fields): Schema.Struct.Type<Fields> => {
  const schema = Schema.Struct(fields)
  const { definitions, schema: json } = Schema.toJsonSchemaDocument(schema)
  // oxlint-disable-next-line effecttsgo/schema-sync -- a field without an example is a bug
  return Schema.decodeUnknownSync(schema)(JsonSchemas.makeExample(JsonSchemas.simplify(json, true), definitions) ?? {})
}

/**
 * A record that is valid in every field: the given values, and the examples of its schema for the others. Its organization
 * is `org_oakridge` by default. Two records of one resource need different ids.
 */
export const build = <Name extends string, Fields extends Field.Fields, Hidden extends Field.Fields, F extends Filters>(
  resource: Resource<Name, Fields, Hidden, F>,
  values: Partial<Stored<Resource<Name, Fields, Hidden, F>>> = {}
): Stored<Resource<Name, Fields, Hidden, F>> => ({
  organization_id: "org_oakridge",
  ...exampleRecord(resource.hidden),
  ...exampleRecord(resource.record.fields),
  ...values
})
