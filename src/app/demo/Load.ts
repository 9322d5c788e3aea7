/** Fills an empty database with the demo data. */
import type { PgClient } from "@effect/sql-pg"
import { DateTime, Effect, Redacted, Schema } from "effect"
import { DeletionTask, Outcome } from "../../api/DeletionTasks.ts"
import { resources } from "../../api/records/index.ts"
import type { Resource, Stored } from "../../api/records/Resource.ts"
import { makeDelivery } from "../../deletions/Delivery.ts"
import type { OwnedTask } from "../../deletions/SenderTasks.ts"
import { keyHash } from "../../keys/OrgResolver.ts"
import { load } from "../../records/Rows.ts"
import { organizations, recordsOf } from "./DemoData.ts"

const deliveryTo = (slug: string) =>
  makeDelivery(
    { "idempotency-key": "demo-delivery-1", "x-organization-id": `org_${slug}` },
    { invoices: [{ invoice_id: `invoice_${slug}_0020` }] }
  )

const deletedAt = DateTime.makeUnsafe("2026-01-09T22:00:00.000Z")

export const demoTask = ({ slug }: { readonly slug: string }): OwnedTask => {
  const { counts, idempotencyKey, organization, taskId } = deliveryTo(slug)
  return {
    organization_id: organization,
    task_id: taskId,
    idempotency_key: idempotencyKey,
    state: "completed",
    received_at: DateTime.subtract(deletedAt, { minutes: 1 }),
    scheduled_for: deletedAt,
    started_at: deletedAt,
    finished_at: deletedAt,
    attempts: 1,
    ...counts,
    outcome: Outcome.make({ invoices: { deleted: 1 }, invoice_lines: {}, lines_of_invoices: 3 }),
    remembered: 0
  }
}

const encodeTask = Schema.encodeEffect(DeletionTask)
const encodeJson = Schema.encodeEffect(Schema.fromJsonString(Schema.Unknown))

const loadOrganization = Effect.fnUntraced(
  function* (sql: PgClient.PgClient, organization: (typeof organizations)[number]) {
    const { slug, key } = organization
    const organization_id = `org_${slug}`
    const records: Partial<Readonly<Record<string, ReadonlyArray<Stored>>>> = recordsOf(organization)
    yield* Effect.forEach(resources, (resource: Resource) => load(sql, resource, records[resource.name] ?? []), {
      discard: true
    })
    const key_hash = keyHash(Redacted.make(key))
    const apiKey = { organization_id, id: `key_${slug}_demo`, name: "Demo", prefix: "pda_demo_", key_hash }
    yield* sql`insert into api_keys ${sql.insert(apiKey)}`
    const { outcome, remembered: _, task_id, ...task } = yield* encodeTask(demoTask(organization))
    const { deletions, fingerprint } = deliveryTo(slug)
    yield* sql`insert into deletion_tasks ${sql.insert({
      ...task,
      organization_id,
      id: task_id,
      fingerprint,
      payload: yield* encodeJson(deletions),
      outcome: yield* encodeJson(outcome)
    })}`
    for (const [index, { invoice_id }] of deletions.invoices.entries()) {
      yield* sql`insert into deletions ${sql.insert({
        organization_id,
        task_id,
        kind: "invoice",
        item: index + 1,
        id: invoice_id,
        deleted_at: task.finished_at,
        verdict: "deleted"
      })}`
    }
  },
  Effect.catchTag("SchemaError", Effect.die)
)

/** Loads the demo data, all or nothing. False if the database has an organization already: nothing is changed. */
export const loadDemoData = Effect.fn("Demo.load")(function* (sql: PgClient.PgClient) {
  const rows = yield* sql`select 1 from organizations limit 1`
  if (rows.length > 0) return false
  yield* sql.withTransaction(
    Effect.forEach(organizations, (organization) => loadOrganization(sql, organization), { discard: true })
  )
  // Without statistics, the first pages would be sorted instead of read in order.
  yield* sql`analyze`
  return true
})
