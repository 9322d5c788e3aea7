/** Fills an empty database with the demo data. */
import type { PgClient } from "@effect/sql-pg"
import { Effect, Redacted, Schema } from "effect"
import { DeletionTask } from "../api/DeletionTasks.ts"
import { resources } from "../api/records/index.ts"
import type { Resource, Stored } from "../api/records/Resource.ts"
import { hashOf } from "../keys/KeyLookup.ts"
import { load } from "../records/Rows.ts"
import { organizations, recordsOf } from "./DemoData.ts"
import { deliveryTo, taskOf } from "./DemoTasks.ts"

const encodeTask = Schema.encodeEffect(DeletionTask)
const encodeJson = Schema.encodeEffect(Schema.fromJsonString(Schema.Unknown))

const loadTask = Effect.fnUntraced(function* (sql: PgClient.PgClient, organization: (typeof organizations)[number]) {
  const { outcome, task_id, ...task } = yield* Effect.orDie(encodeTask(taskOf(organization)))
  const { deletions, fingerprint } = deliveryTo(organization)
  yield* sql`insert into deletion_tasks ${sql.insert({
    ...task,
    organization_id: `org_${organization.slug}`,
    id: task_id,
    fingerprint,
    payload: yield* Effect.orDie(encodeJson(deletions)),
    outcome: yield* Effect.orDie(encodeJson(outcome))
  })}`
})

const loadOrganization = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  organization: (typeof organizations)[number]
) {
  const records: Partial<Readonly<Record<string, ReadonlyArray<Stored>>>> = recordsOf(organization)
  yield* Effect.forEach(resources, (resource: Resource) => load(sql, resource, records[resource.name] ?? []), {
    discard: true
  })
  const { slug, key } = organization
  yield* sql`insert into api_keys ${sql.insert({
    organization_id: `org_${slug}`,
    id: `key_${slug}_demo`,
    name: "Demo",
    prefix: "pda_demo_",
    key_hash: hashOf(Redacted.make(key))
  })}`
  yield* loadTask(sql, organization)
})

/** Loads the demo data, all of it or nothing. False when the database has an organization already: it is left as it is. */
export const loadDemoData = Effect.fn("Demo.load")(function* (sql: PgClient.PgClient) {
  const found = yield* sql`select 1 from organizations limit 1`
  if (found.length > 0) return false
  yield* sql.withTransaction(
    Effect.forEach(organizations, (organization) => loadOrganization(sql, organization), { discard: true })
  )
  // Without statistics, the first pages would be sorted instead of read in order.
  yield* sql`analyze`
  return true
})
