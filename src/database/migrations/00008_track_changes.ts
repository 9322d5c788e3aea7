/** The feeds of the records: the position of each, the triggers that keep it, and the index, while the tables are in use. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { buildIndex, locking, retried } from "./addField.ts"
import { script } from "./script.ts"
import { changesIndex, trackChanges, type Tracked } from "./trackChanges.ts"

const tables: ReadonlyArray<Tracked> = [
  { table: "organizations", changedAt: "updated_at" },
  { table: "clinics" },
  { table: "pets", changedAt: "updated_at" },
  { table: "subscriptions", changedAt: "updated_at" },
  { table: "payment_plans", changedAt: "updated_at" },
  { table: "payment_intents", changedAt: "updated_at" },
  { table: "cancellation_payment_intents", changedAt: "updated_at" },
  { table: "pet_benefits", changedAt: "updated_at" },
  { table: "products", changedAt: "modified_at" },
  { table: "consumption_logs", changedAt: "updated_at" },
  { table: "invoices", changedAt: "updated_at" },
  { table: "invoice_lines", changedAt: "updated_at" },
  { table: "charges", changedAt: "updated_at" },
  { table: "charge_payments", changedAt: "updated_at" },
  { table: "charge_adjustments", changedAt: "updated_at" },
  { table: "charge_refunds", changedAt: "updated_at" }
]

const track = Effect.fnUntraced(function* (tracked: Tracked) {
  const sql = yield* SqlClient.SqlClient
  const done = yield* sql`select from change_feeds where table_name = ${tracked.table}`
  if (done.length === 0) yield* script(trackChanges(tracked))
})

export default {
  online: Effect.forEach(
    tables,
    (tracked) =>
      Effect.gen(function* () {
        yield* retried(locking(tracked.table, track(tracked)))
        yield* retried(buildIndex(tracked.table, `${tracked.table}_changes`, changesIndex))
      }),
    { discard: true }
  )
}
