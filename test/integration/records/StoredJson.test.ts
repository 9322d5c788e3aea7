/** The JSON that the database keeps of a row is, byte for byte, the one that the record's schema encodes. */
import { assert, layer } from "@effect/vitest"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Schema } from "effect"
import { type Row } from "../../../src/records/Rows.ts"
import { owners, recordsOf } from "../../support/arbitraries.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { tries } from "../../support/tries.ts"
import { fill, resources } from "./stores.ts"

const storedRows = (sql: PgClient.PgClient, table: string) =>
  Effect.map(
    sql<{ organization: string; id: string; json: string }>`
      select organization_id as organization, id, record as json from ${sql(table)}`,
    (rows) => rows.map(({ id, json, organization }) => ({ organization, id, json }))
  )

const shown = (rows: ReadonlyArray<Row>) => rows.map(({ id, json, organization }) => ({ organization, id, json }))

/** The columns that can be written, without organization and id. */
const columnsOf = (sql: PgClient.PgClient, table: string) =>
  Effect.map(
    sql<{ name: string }>`
      select attname as name from pg_attribute
      where attrelid = ${table}::regclass and attnum > 0 and not attisdropped and attgenerated = ''
        and attname not in ('organization_id', 'id')`,
    (columns) => columns.map(({ name }) => name).join(", ")
  )

const Json = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown))

const withId = Effect.fnUntraced(function* (json: string, id: string) {
  return yield* Schema.encodeEffect(Json)({ ...(yield* Schema.decodeEffect(Json)(json)), id })
})

layer(TestDatabase.layerDatabases, { excludeTestServices: true })("the stored JSON", (it) => {
  for (const resource of resources) {
    const { name, orderedBy, table } = resource
    for (const { often, options } of tries({ few: 1, many: 12, size: 24, maxShrinks: 200 }))
      it.effect.prop(
        `of a row of ${name} is that of its values, inserted, read in by COPY, or updated${often}`,
        { records: recordsOf(resource, { minLength: 12, maxLength: 24 }) },
        ({ records }) =>
          Effect.gen(function* () {
            const { sql } = yield* TestDatabase
            const columns = yield* columnsOf(sql, table)
            const rows = yield* fill({ resource, records })
            assert.sameDeepMembers(yield* storedRows(sql, table), shown(rows))

            const [folder] = yield* sql<{ path: string }>`select current_setting('data_directory') as path`
            const file = `'${folder?.path}/copied_${table}'`
            yield* sql.unsafe(`copy ${table} (organization_id, id, ${columns}) to ${file}`)
            yield* sql.unsafe(`truncate ${table}`)
            yield* sql.unsafe(`copy ${table} (organization_id, id, ${columns}) from ${file}`)
            assert.sameDeepMembers(yield* storedRows(sql, table), shown(rows))

            const sources = rows.filter(({ organization }) => organization === owners[0])
            const targets = rows.filter(({ organization }) => organization === owners[1])
            const [source] = sources
            if (source === undefined) return
            // An update that leaves the time of the last change alone stamps it: no record has this one.
            yield* sql.unsafe(
              `update ${table} set ${orderedBy} = '1970-01-02 03:04:05.678' where organization_id = $1`,
              [owners[1]]
            )
            yield* sql.unsafe(
              `update ${table} set (${columns}) = (select ${columns} from ${table} where organization_id = $1 and id = $2)
               where organization_id = $3`,
              [source.organization, source.id, owners[1]]
            )
            const updated = yield* Effect.forEach(targets, ({ id, organization }) =>
              Effect.map(withId(source.json, id), (json) => ({ organization, id, json }))
            )
            assert.sameDeepMembers(yield* storedRows(sql, table), [...shown(sources), ...updated])
          }),
        options
      )
  }
})
