/** The findings of the doctor about records: organizations, deletions, references, and subscriptions. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { subscriptions } from "../../../src/operations/doctor/RecordChecks.ts"
import { eventually } from "../../support/eventually.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"
import { long } from "../../support/tries.ts"
import { begun, during, examined, has, messagesOf, run } from "./examined.ts"

const findings = Effect.flatMap(TestDatabase, ({ url }) => examined({ DATABASE_URL: url }))

const untouched = ["pets", "organizations", "invoices", "invoice_lines", "deletions", "deletion_tasks"]
const emptied = untouched.map((table) => `delete from ${table}`).join("; ")

const org = (id: string) => `insert into organizations (organization_id, id) values ('${id}', '${id}')`

const alter = (change: string) => `alter subscription doctor_test ${change}`

const fact = (kind: string, id: string, more = "true, null") =>
  `insert into deletions (organization_id, task_id, kind, item, id, deleted_at, verdict, is_known, holds, undone_at)
    values ('org_a', gen_random_uuid(), '${kind}', 0, '${id}', now(), 'deleted', true, ${more})`

const invoice = (...values: ReadonlyArray<string>) =>
  `insert into invoices (organization_id, id, is_deleted) values ${values.join(", ")}`
const line = "insert into invoice_lines (organization_id, id, invoice) values ('org_a', 'l', 'i')"

/** Invoices and lines that are served, by what deleted them; or what makes that right. */
const deletions: ReadonlyArray<readonly [what: string, statements: ReadonlyArray<string>, found?: string]> = [
  ["an invoice", [invoice("('org_a', 'i', false)"), fact("invoice", "i")], "1, such as the invoice i of org_a"],
  ["a line", [line, fact("line", "l")], "1, such as the line l of org_a"],
  ["a line of a deleted invoice", [line, fact("invoice", "i")], "1, such as the line l of org_a"],
  [
    "no marked one, none of another organization, and none of a deletion that does not hold or was undone",
    [
      invoice(
        "('org_a', 'i', true)",
        "('org_b', 'i', false)",
        "('org_a', 'j', false)",
        "('org_a', 'k', false)",
        "('org_a', 'l', false)"
      ),
      fact("invoice", "i"),
      fact("invoice", "j", "false, null"),
      fact("invoice", "k", "true, now()"),
      fact("line", "l")
    ]
  ],
  [
    "none of a deletion that waits for open transactions",
    [
      invoice("('org_a', 'i', false)"),
      fact("invoice", "i"),
      `insert into deletion_tasks (organization_id, id, idempotency_key, fingerprint, payload, invoices_count,
        invoice_lines_count, received_at, scheduled_for, state, finished_at, unsettled_since)
      select organization_id, task_id, 'k', '', '{}', 1, 0, now(), now(), 'completed', now(), now() from deletions`
    ]
  ]
]

/** References to nothing, by the table and column. */
const referenced: Readonly<Record<string, string>> = {
  "pets.clinic (2)":
    "insert into pets (organization_id, id, clinic) values ('org_a', '1', 'c'), ('org_a', '2', 'c'), ('org_a', '3', null)",
  "invoice_lines.invoice (1)": `${invoice("('org_b', 'i', false)")}; ${line}`,
  "charges.pet (1)": "insert into charges (organization_id, id, pet) values ('org_a', 'c', 'p')"
}

layer(begun, { excludeTestServices: true })("about records the doctor", (it) => {
  it.effect(
    "says that all is well",
    () =>
      Effect.gen(function* () {
        yield* during([org("org_a"), invoice("('org_a', 'i', false)"), line].join("; "), emptied)
        const found = yield* findings
        has(found, "ok", "Every deletion is applied to its records.")
        has(found, "ok", "Every checked reference resolves to a record.")
      }),
    long
  )

  it.effect.each(deletions)(
    "names records that are served although they were deleted: %s",
    ([, statements, expected]) =>
      Effect.gen(function* () {
        yield* during(statements.join("; "), emptied)
        const found = yield* findings
        if (expected === undefined) has(found, "ok", "Every deletion is applied")
        else has(found, "fail", `Deleted records are still served: ${expected}.`)
      }),
    long
  )

  it.effect.each(Object.entries(referenced))(
    "counts references to records that are not there: %s",
    ([message, statements]) =>
      Effect.gen(function* () {
        yield* during(statements, `${emptied}; delete from charges`)
        has(yield* findings, "warn", `References to missing records: ${message}.`)
      }),
    long
  )

  it.effect(
    "names a subscription that is disabled, and one that is enabled and has no worker",
    () =>
      Effect.gen(function* () {
        const { sql, url } = yield* TestDatabase
        assert.deepStrictEqual(yield* subscriptions(sql), [])
        yield* during(
          `create subscription doctor_test connection 'host=127.0.0.1 port=1 dbname=nothing' publication p
            with (connect = false, slot_name = none)`,
          `${alter("disable")}; ${alter("set (slot_name = none)")}; drop subscription doctor_test`
        )
        const name = "The subscription doctor_test of logical replication"
        has(yield* findings, "warn", `${name} is disabled.`)
        yield* run(`${alter("set (slot_name = 'doctor_test')")}; ${alter("enable")}`)
        const check = Effect.map(subscriptions(sql), messagesOf)
        // Its worker starts, and fails, every five seconds.
        yield* eventually("no worker", check, ([found = ""]) => found === `${name} has no worker.`)
        // A standby has those of its primary, and no worker of theirs.
        const recovering = "function public.pg_is_in_recovery()"
        yield* during(`create ${recovering} returns boolean language sql return true`, `drop ${recovering}`)
        const standby = yield* clientOf(url, { settings: { search_path: "public, pg_catalog" } })
        assert.deepStrictEqual(yield* subscriptions(standby), [])
      }),
    long
  )
})
