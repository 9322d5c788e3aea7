/** Records of a resource in both stores: what the suites run over. */
import { Effect } from "effect"
import { resources as all } from "../../../src/api/records/index.ts"
import type { Resource, Stored } from "../../../src/api/records/Resource.ts"
import { RecordDatabase } from "../../../src/database/Database.ts"
import { organizations, recordsOf } from "../../../src/demo/DemoData.ts"
import { load, rowsOf } from "../../../src/records/Rows.ts"
import * as Memory from "../../../src/records/Memory.ts"
import * as Postgres from "../../../src/records/Postgres.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

/** All resources, whatever their types. */
export const resources: ReadonlyArray<Resource> = all

/** A resource and records of it, in no order. */
export interface Dataset {
  readonly resource: Resource
  readonly records: ReadonlyArray<Stored>
}

/** Records of a resource. */
export const dataset = <R extends Resource>(resource: R, records: ReadonlyArray<Stored<R>>): Dataset => ({
  resource,
  records
})

const demo: ReadonlyArray<Partial<Readonly<Record<string, ReadonlyArray<Stored>>>>> = organizations.map(recordsOf)

/** The demo records of both organizations. */
export const demoOf = (resource: Resource) =>
  dataset(
    resource,
    demo.flatMap((records) => records[resource.name] ?? [])
  )

/** Makes these records the only ones in their table. */
export const fill = Effect.fnUntraced(function* ({ resource, records }: Dataset) {
  const { sql } = yield* TestDatabase
  yield* sql.unsafe(`truncate ${resource.table}`)
  yield* load(sql, resource, records)
  return yield* rowsOf(resource, records)
})

/** Loads records; gives their rows and the stores over them. `skipping` skips in the index from the first record on. */
export const storesOf = Effect.fnUntraced(function* (data: Dataset) {
  const { resource } = data
  const rows = yield* fill(data)
  const sql = yield* RecordDatabase
  return {
    resource,
    rows,
    memory: Memory.make(resource, rows),
    postgres: Postgres.make(sql, resource),
    skipping: Postgres.make(sql, resource, { deep: 1 })
  }
})

export type Stores = Effect.Success<ReturnType<typeof storesOf>>
