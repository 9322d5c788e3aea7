/** The invoices and lines that a deletion deletes, and the items that its outcome counts, in the database. */
import { assert } from "@effect/vitest"
import { Arbitrary, Array, Effect, Schema } from "effect"
import { TestClock } from "effect/testing"
import type { Deletions } from "../../../src/deletions/Delivery.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { invoices, lines, outcomeOf, owners, rowsOf, seedInvoices } from "../../support/deletions/invoiceFixture.ts"
import { claimAll, delay, delivery, inItsOwnTime, overPostgres, scheduled } from "../../support/deletions/support.ts"

type Invoice = Deletions["invoices"][number]
type Line = Deletions["invoice_lines"][number]

/** The verdict on an item, by the rules and not by the statement. */
const verdictOnInvoice = ({ client_id, clinic_id, invoice_id }: Invoice) => {
  const [, home, servicing, client] = invoices.find(([id]) => id === invoice_id) ?? []
  if (client === undefined) return "not_found"
  if (clinic_id !== null && clinic_id !== home && clinic_id !== servicing) return "clinic_mismatch"
  return client_id !== null && client_id !== client ? "client_mismatch" : "deleted"
}

const verdictOnLine = ({ clinic_id, invoice_id, invoice_line_id }: Line) => {
  const [, of, clinic] = lines.find(([id]) => id === invoice_line_id) ?? []
  if (clinic === undefined) return "not_found"
  if (invoice_id !== null && invoice_id !== of) return "invoice_mismatch"
  return clinic_id !== null && clinic_id !== clinic ? "clinic_mismatch" : "deleted"
}

const countsOf = <Verdict extends string>(verdicts: ReadonlyArray<Verdict>) =>
  verdicts.reduce<Partial<Record<Verdict, number>>>((sum, each) => ({ ...sum, [each]: (sum[each] ?? 0) + 1 }), {})

/** The ids that a task deletes, and its outcome. */
const expected = ({ invoice_lines, invoices: named }: Deletions) => {
  const targets = new Set(
    named.filter((item) => verdictOnInvoice(item) === "deleted").map(({ invoice_id }) => invoice_id)
  )
  const ofInvoices = lines.flatMap(([id, of]) => (of !== null && targets.has(of) ? [id] : []))
  const alone = invoice_lines.filter((item) => verdictOnLine(item) === "deleted")
  return {
    ids: new Set([...targets, ...ofInvoices, ...alone.map(({ invoice_line_id }) => invoice_line_id)]),
    outcome: outcomeOf({
      invoices: countsOf(named.map(verdictOnInvoice)),
      invoice_lines: countsOf(invoice_lines.map(verdictOnLine)),
      lines_of_invoices: ofInvoices.length
    })
  }
}

const oneOf = <const L extends ReadonlyArray<string>>(...values: L) => Arbitrary.schema(Schema.Literals(values))

/** None more often than one of the values. */
const oneOrNone = (...values: ReadonlyArray<string>) =>
  Arbitrary.map(oneOf("", "", ...values), (value) => (value === "" ? null : value))

const ofClinic = oneOrNone("home", "servicing", "other")

/** Tasks of two organizations that have the same ids, and name the same ones in other ways. */
const someTasks = Arbitrary.array(
  Arbitrary.all({
    owner: oneOf(...owners),
    invoices: Arbitrary.array(
      Arbitrary.map(
        Arbitrary.all([oneOf("i1", "i2", "i3", "i4", "I1", "i1a"), ofClinic, oneOrNone("client", "other")]),
        ([invoice_id, clinic_id, client_id]) => ({ invoice_id, clinic_id, client_id })
      ),
      { maxLength: 3 }
    ),
    lines: Arbitrary.array(
      Arbitrary.map(
        Arbitrary.all([oneOf("i1a", "i1b", "i2a", "stray", "loose", "i1"), oneOrNone("i1", "nowhere"), ofClinic]),
        ([invoice_line_id, invoice_id, clinic_id]) => ({ invoice_line_id, invoice_id, clinic_id })
      ),
      { maxLength: 3 }
    )
  }),
  { minLength: 2, maxLength: 6 }
)

overPostgres("a deletion", (it) => {
  it.effect.prop(
    "deletes what its items match, of its organization alone, and counts the others by reason, whatever runs beside it",
    { someTasks },
    ({ someTasks: given }) =>
      Effect.gen(function* () {
        const sql = yield* seedInvoices
        const before = yield* rowsOf(sql)
        const { run } = yield* Scheduler
        const tasks = yield* Effect.forEach(given, ({ invoices: named, lines: alone, owner }, index) => {
          const made = delivery(`${index}`, { invoices: named, invoice_lines: alone }, owner)
          return Effect.as(scheduled(made), made)
        })
        yield* TestClock.adjust(delay)
        const claims = yield* claimAll()
        const outcomes = yield* run(claims)
        for (const { deletions, taskId } of tasks) {
          const outcome = outcomes[claims.findIndex((claim) => claim.taskId === taskId)]
          assert.deepStrictEqual(outcome?._tag === "Completed" ? outcome.outcome : outcome, expected(deletions).outcome)
        }
        const ids = owners.map((owner) =>
          tasks.flatMap(({ deletions, organization }) =>
            organization === owner ? Array.fromIterable(expected(deletions).ids) : []
          )
        )
        const rows = yield* rowsOf(sql)
        for (const [index, row] of rows.entries()) {
          const { id, is_deleted, owner } = row
          assert.strictEqual(is_deleted, ids[owner === "org_a" ? 0 : 1]?.includes(id), `${owner}/${id}`)
          if (!is_deleted) assert.deepStrictEqual(row, before[index])
        }
      }).pipe(inItsOwnTime),
    { arbitrary: { runs: 40, size: 20, maxShrinks: 50 } }
  )
})
