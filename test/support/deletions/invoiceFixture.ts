/** Invoices and lines of two organizations, and what a test reads of them. */
import type { PgClient } from "@effect/sql-pg"
import { DateTime, Effect } from "effect"
import { Outcome } from "../../../src/api/DeletionTasks.ts"
import { keepingTimes } from "../../../src/records/Rows.ts"
import { TestDatabase } from "../TestDatabase.ts"
import { empty } from "./sessions.ts"
import { start } from "./tasks.ts"

const old = DateTime.formatIso(DateTime.makeUnsafe(start - 86_400_000))

/** Id, home clinic, servicing clinic and client. */
export const invoices = [
  ["i1", "home", "servicing", "client"],
  ["i2", "home", null, null],
  ["i3", "servicing", "home", "client"],
  ["i4", null, null, "other"]
] as const

/** Id, invoice and clinic. */
export const lines = [
  ["i1a", "i1", "home"],
  ["i1b", "i1", "servicing"],
  ["i2a", "i2", null],
  ["i3a", "i3", "home"],
  ["stray", "nowhere", "home"],
  ["loose", null, "home"]
] as const

/** Two organizations that have the same invoices and lines. */
export const owners = ["org_a", "org_b"] as const

/** Fills the tables: nothing is deleted, everything was changed a day ago. */
export const seedInvoices = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  yield* empty(sql, "invoices", "invoice_lines")
  const times = { created_at: old, updated_at: old }
  yield* keepingTimes(
    sql,
    Effect.gen(function* () {
      for (const organization_id of owners) {
        for (const [id, home_clinic, servicing_clinic, client_id] of invoices) {
          const row = { organization_id, id, home_clinic, servicing_clinic, client_id, ...times }
          yield* sql`insert into invoices ${sql.insert(row)}`
        }
        for (const [id, invoice, clinic] of lines) {
          yield* sql`insert into invoice_lines ${sql.insert({ organization_id, id, invoice, clinic, ...times })}`
        }
      }
    })
  )
  return sql
})

/** What a deletion changes of each row, to the microsecond. */
export const rowsOf = (sql: PgClient.PgClient) =>
  sql<{ owner: string; id: string; is_deleted: boolean; deleted_at: string | null; updated_at: string }>`
    select organization_id as owner, id, is_deleted, deleted_at::text, updated_at::text from invoices
    union all select organization_id, id, is_deleted, deleted_at::text, updated_at::text from invoice_lines
    order by 1, 2`

/** Outcomes in which nothing was counted but what is given. */
export const outcomeOf = (counted: Partial<Parameters<typeof Outcome.make>[0]>) =>
  Outcome.make({ invoices: {}, invoice_lines: {}, ...counted })

/** Columns by their SQL, in which `n` is the number of the row, from 1. */
type Columns = Readonly<Record<string, string>>

const addRows = (table: string, count: number, columns: Columns) =>
  Effect.flatMap(TestDatabase, ({ sql }) =>
    sql.unsafe(`insert into ${table} (${Object.keys(columns).join(", ")})
      select ${Object.values(columns).join(", ")} from generate_series(1, ${count}) n`)
  )

/** Adds facts: by default of invoices that nobody has. */
export const addFacts = (count: number, columns: Columns = {}) =>
  addRows("deletions", count, {
    organization_id: "'org_a'",
    task_id: "gen_random_uuid()",
    kind: "'invoice'",
    item: "n",
    id: "'i' || n",
    deleted_at: "now()",
    verdict: "'not_found'",
    ...columns
  })

/** Adds tasks: columns that have no default, or another value than the time of now. */
export const addTasks = (count: number, columns: Columns) =>
  addRows("deletion_tasks", count, {
    id: "gen_random_uuid()",
    idempotency_key: "n",
    fingerprint: "''",
    payload: "'{}'",
    invoices_count: "0",
    invoice_lines_count: "0",
    received_at: "now()",
    scheduled_for: "now()",
    ...columns
  })
