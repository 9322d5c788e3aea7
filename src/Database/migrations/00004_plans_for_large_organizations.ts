/**
 * Searches are planned once for all organizations, so the planner is told to expect the largest: that an organization
 * has as many records as the one with the most. It would else expect an average one, and where most are small, sort all
 * records of a large one to find its first page.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const tables = [
  "clinics",
  "pets",
  "subscriptions",
  "payment_plans",
  "payment_intents",
  "cancellation_payment_intents",
  "pet_benefits",
  "products",
  "consumption_logs",
  "invoices",
  "invoice_lines",
  "charges",
  "charge_payments",
  "charge_adjustments",
  "charge_refunds"
]

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(
    tables.flatMap((table) => [
      `alter table ${table} alter column organization_id set (n_distinct = 1)`,
      `analyze ${table} (organization_id)`
    ]),
    (statement) => sql.unsafe(statement),
    { discard: true }
  )
)
