/** Records of a resource in both stores: what the suites run over. */
import { Effect } from "effect"
import { CurrentOrganization } from "../../../src/api/Authorization.ts"
import { resources as all } from "../../../src/api/records/index.ts"
import type { Resource, Stored } from "../../../src/api/records/Resource.ts"
import { RecordDatabase } from "../../../src/database/Database.ts"
import * as OrganizationReads from "../../../src/database/OrganizationReads.ts"
import * as Records from "../../../src/records/Repository.ts"
import { load, toRows } from "../../../src/records/Rows.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

/** All resources, whatever their types. */
export const resources: ReadonlyArray<Resource> = all

/** A resource and records of it, in no order. */
export interface Dataset {
  readonly resource: Resource
  readonly records: ReadonlyArray<Stored>
}

export const dataset = <R extends Resource>(resource: R, records: ReadonlyArray<Stored<R>>): Dataset => ({
  resource,
  records
})

export const asKnown = (id: string) => Effect.provideService(CurrentOrganization, CurrentOrganization.of({ id: id }))

/** Makes these records the only ones in their table. */
export const fill = Effect.fnUntraced(function* ({ records, resource }: Dataset) {
  const { sql } = yield* TestDatabase
  yield* sql.unsafe(`truncate ${resource.table}`)
  yield* load(sql, resource, records)
  return yield* toRows(resource, records)
})

/** Loads records; gives their rows and the stores over them. `skipping` skips in the index from the first record on. */
export const storesOf = Effect.fnUntraced(function* (data: Dataset) {
  const { resource } = data
  const rows = yield* fill(data)
  const read = OrganizationReads.make(yield* RecordDatabase)
  return {
    resource,
    rows,
    memory: Records.makeMemory(resource, rows),
    postgres: Records.make(read, resource),
    skipping: Records.make(read, resource, 1)
  }
})

export type Stores = Effect.Success<ReturnType<typeof storesOf>>
