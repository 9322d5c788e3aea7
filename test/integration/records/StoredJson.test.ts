/**
 * The JSON that the database keeps of each row is, byte for byte, what the record's schema encodes, whoever writes the
 * row and however. Decisions: "Responses of the data API".
 */
import { assert, layer } from "@effect/vitest"
import type { PgClient } from "@effect/sql-pg"
import { Arbitrary, Effect, Schema } from "effect"
import { organizations, recordsOf } from "../../../src/demo/DemoData.ts"
import { paymentIntents } from "../../../src/api/records/PaymentIntents.ts"
import type { Stored } from "../../../src/api/records/Resource.ts"
import type { Row } from "../../../src/records/Rows.ts"
import * as Arbitraries from "../../support/arbitraries.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { tries } from "../../support/tries.ts"
import { dataset, fill, resources } from "./stores.ts"

const byKey = (rows: ReadonlyArray<readonly [key: string, json: string]>) =>
  rows.toSorted(([a], [b]) => (a < b ? -1 : 1))

const keyOf = (organization: string, id: string) => `${organization}/${id}`

const encodedRows = (rows: ReadonlyArray<Row>) =>
  byKey(rows.map(({ organization, id, json }) => [keyOf(organization, id), json]))

const storedRows = Effect.fnUntraced(function* (sql: PgClient.PgClient, table: string) {
  const rows = yield* sql<{ organization_id: string; id: string; record: string }>`
    select organization_id, id, record from ${sql(table)}`
  return byKey(rows.map(({ organization_id, id, record }) => [keyOf(organization_id, id), record]))
})

/** The columns that one writes, organization and id left out. */
const columnsOf = Effect.fnUntraced(function* (sql: PgClient.PgClient, table: string) {
  const columns = yield* sql<{ name: string }>`
    select attname as name from pg_attribute
    where attrelid = ${table}::regclass and attnum > 0 and not attisdropped and attgenerated = ''
      and attname not in ('organization_id', 'id')`
  return columns.map(({ name }) => name).join(", ")
})

const Json = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown))

const withId = Effect.fnUntraced(function* (json: string, id: string) {
  return yield* Schema.encodeEffect(Json)({ ...(yield* Schema.decodeEffect(Json)(json)), id })
})

const intent: Stored<typeof paymentIntents> = recordsOf(organizations[0])["payment-intents"][0]

layer(TestDatabase.layerDatabases, { excludeTestServices: true })((it) => {
  for (const resource of resources) {
    const { name, table } = resource

    for (const { often, options } of tries({ few: 2, many: 20, size: 24, maxShrinks: 200 }))
      it.effect.prop(
        `${name}: an inserted row keeps the JSON that the schema encodes${often}`,
        { records: Arbitraries.recordsOf(resource, { maxLength: 24 }) },
        ({ records }) =>
          Effect.gen(function* () {
            const { sql } = yield* TestDatabase
            const rows = yield* fill({ resource, records })
            assert.deepStrictEqual(yield* storedRows(sql, table), encodedRows(rows))
          }),
        options
      )

    it.effect(`${name}: a row that is updated, or read in by COPY, keeps the JSON of its new values`, () =>
      Effect.gen(function* () {
        const { sql } = yield* TestDatabase
        const columns = yield* columnsOf(sql, table)
        const generated = yield* Arbitrary.sampleEffect(
          Arbitraries.recordsOf(resource, { minLength: 24, maxLength: 24 }),
          { count: 2, size: 24, seed: name }
        )
        for (const records of generated) {
          const rows = yield* fill({ resource, records })
          const [from, to] = Arbitraries.owners.map((owner) =>
            rows.filter(({ organization }) => organization === owner)
          )
          const pairs = (from ?? []).flatMap((source, index) => {
            const target = to?.[index]
            return target === undefined ? [] : [{ source, target }]
          })
          assert.isAbove(pairs.length, 0)
          // An update that leaves the time of the last change as it is would have it set.
          yield* sql.unsafe(`update ${table} set ${resource.orderedBy} = '1970-01-01' where organization_id = $1`, [
            Arbitraries.owners[1]
          ])
          for (const { source, target } of pairs) {
            yield* sql.unsafe(
              `update ${table} set (${columns}) =
                 (select ${columns} from ${table} where organization_id = $1 and id = $2)
               where organization_id = $3 and id = $4`,
              [source.organization, source.id, target.organization, target.id]
            )
          }
          const updated = new Map(yield* storedRows(sql, table))
          for (const { source, target } of pairs) {
            const expected = yield* withId(source.json, target.id)
            assert.strictEqual(updated.get(keyOf(target.organization, target.id)), expected)
          }

          const [folder] = yield* sql<{ path: string }>`select current_setting('data_directory') as path`
          const file = `'${folder?.path}/copied_${table}'`
          yield* sql.unsafe(`copy ${table} (organization_id, id, ${columns}) to ${file}`)
          yield* sql.unsafe(`truncate ${table}`)
          yield* sql.unsafe(`copy ${table} (organization_id, id, ${columns}) from ${file}`)
          assert.deepStrictEqual(yield* storedRows(sql, table), [...updated])
        }
      })
    )
  }

  const intents = {
    "a split without any amount": { payment_split: { to_Platform: null, to_Processor: null, to_Clinic: null } },
    "no plan name": { plan_name: null, species: null, plan_header: null, wellnes_plan_name: null }
  }
  for (const [name, given] of Object.entries(intents)) {
    it.effect(`a payment intent with ${name} is shown the same by the schema and by its table`, () =>
      Effect.gen(function* () {
        const { sql } = yield* TestDatabase
        const rows = yield* fill(dataset(paymentIntents, [{ ...intent, ...given }]))
        assert.deepStrictEqual(yield* storedRows(sql, "payment_intents"), encodedRows(rows))
      })
    )
  }
})
