/** The invoices and lines that a deletion deletes, and the items that its outcome counts, in the database. */
import { assert } from "@effect/vitest"
import { Arbitrary, Array, Effect, Schema } from "effect"
import { TestClock } from "effect/testing"
import type { Outcome } from "../../../src/api/DeletionTasks.ts"
import type { Deletions } from "../../../src/deletions/Delivery.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import {
  deleted,
  deletedIds,
  invoices,
  lines,
  outcomeOf,
  owners,
  rowsOf,
  seedInvoices
} from "../../support/deletions/invoiceFixture.ts"
import { claimAll, delay, delivery, inItsOwnTime, overPostgres, scheduled } from "../../support/deletions/support.ts"

const invoice = (invoice_id: string, clinic_id: string | null = null, client_id: string | null = null) => ({
  invoice_id,
  clinic_id,
  client_id
})

const line = (invoice_line_id: string, invoice_id: string | null = null, clinic_id: string | null = null) => ({
  invoice_line_id,
  invoice_id,
  clinic_id
})

type Invoice = ReturnType<typeof invoice>
type Line = ReturnType<typeof line>
type Counts = Parameters<typeof outcomeOf>[0]

const one: Counts = { invoices: { deleted: 1 }, lines_of_invoices: 2 }
const oneLine: Counts = { invoice_lines: { deleted: 1 } }
const no = (verdict: keyof Outcome["invoices"]): Counts => ({ invoices: { [verdict]: 1 } })
const noLine = (verdict: keyof Outcome["invoice_lines"]): Counts => ({ invoice_lines: { [verdict]: 1 } })

type Case = readonly [
  rule: string,
  invoices: ReadonlyArray<Invoice>,
  lines: ReadonlyArray<Line>,
  ids: string,
  counts: Counts
]

const cases: ReadonlyArray<Case> = [
  ["an invoice with all its lines", [invoice("i1")], [], "i1 i1a i1b", one],
  ["an invoice without lines", [invoice("i4")], [], "i4", no("deleted")],
  ["an invoice of its home clinic", [invoice("i1", "home")], [], "i1 i1a i1b", one],
  ["an invoice of its servicing clinic", [invoice("i1", "servicing")], [], "i1 i1a i1b", one],
  ["an invoice of its client", [invoice("i1", null, "client")], [], "i1 i1a i1b", one],
  ["no invoice of another clinic", [invoice("i1", "other")], [], "", no("clinic_mismatch")],
  ["no invoice of another client", [invoice("i1", "home", "other")], [], "", no("client_mismatch")],
  ["no invoice without a clinic, by a clinic", [invoice("i4", "home")], [], "", no("clinic_mismatch")],
  ["no invoice without a client, by a client", [invoice("i2", null, "client")], [], "", no("client_mismatch")],
  ["no invoice by an id in another case", [invoice("I1")], [], "", no("not_found")],
  [
    "no line for an invoice, and no invoice for a line",
    [invoice("i1a")],
    [line("i1")],
    "",
    { ...no("not_found"), ...noLine("not_found") }
  ],
  ["a line alone", [], [line("i1a")], "i1a", oneLine],
  ["a line of its invoice and clinic", [], [line("i1a", "i1", "home")], "i1a", oneLine],
  ["a line whose invoice does not exist", [], [line("stray", "nowhere")], "stray", oneLine],
  ["no line of another invoice", [], [line("i1a", "i2")], "", noLine("invoice_mismatch")],
  ["no line without an invoice, by an invoice", [], [line("loose", "i1")], "", noLine("invoice_mismatch")],
  ["no line of its invoice's other clinic", [], [line("i1a", null, "servicing")], "", noLine("clinic_mismatch")],
  ["no line without a clinic, by a clinic", [], [line("i2a", null, "home")], "", noLine("clinic_mismatch")],
  [
    "a line with its invoice, though the line alone does not match",
    [invoice("i1")],
    [line("i1a", null, "other")],
    "i1 i1a i1b",
    { ...one, ...noLine("clinic_mismatch") }
  ],
  [
    "a line alone, though its invoice does not match",
    [invoice("i1", "other")],
    [line("i1a")],
    "i1a",
    { ...no("clinic_mismatch"), ...oneLine }
  ],
  [
    "an invoice that is named twice, once with a match",
    [invoice("i1", "other"), invoice("i1", "home")],
    [],
    "i1 i1a i1b",
    { ...one, invoices: { deleted: 1, clinic_mismatch: 1 } }
  ]
]

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

/** Tasks of two organizations that have the same ids, and name the same ones in other ways. */
const someTasks = Arbitrary.array(
  Arbitrary.all({
    owner: oneOf(...owners),
    invoices: Arbitrary.array(
      Arbitrary.map(
        Arbitrary.all([oneOf("i1", "i2", "i3", "x"), oneOrNone("home", "other"), oneOrNone("client")]),
        ([id, clinic, client]) => invoice(id, clinic, client)
      ),
      { maxLength: 3 }
    ),
    lines: Arbitrary.array(
      Arbitrary.map(
        Arbitrary.all([oneOf("i1a", "i1b", "i2a", "i3a", "x"), oneOrNone("i1"), oneOrNone("home")]),
        ([id, of, clinic]) => line(id, of, clinic)
      ),
      { maxLength: 3 }
    )
  }),
  { minLength: 2, maxLength: 6 }
)

overPostgres("a deletion", (it) => {
  it.effect.each(cases)("deletes %s", ([, named, alone, ids, counts]) =>
    Effect.gen(function* () {
      const sql = yield* seedInvoices
      const before = yield* rowsOf(sql)
      assert.deepStrictEqual(yield* deleted({ invoices: named, invoice_lines: alone }), outcomeOf(counts))
      const after = yield* rowsOf(sql)
      assert.deepStrictEqual(deletedIds(after).join(" "), ids)
      for (const [index, row] of after.entries()) if (!row.is_deleted) assert.deepStrictEqual(row, before[index])
    }).pipe(inItsOwnTime)
  )

  it.effect.prop(
    "is that of its organization alone, with an outcome of its own, whatever runs in the same transaction",
    { someTasks },
    ({ someTasks: given }) =>
      Effect.gen(function* () {
        const sql = yield* seedInvoices
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
        for (const { id, is_deleted, owner } of rows) {
          assert.strictEqual(is_deleted, ids[owner === "org_a" ? 0 : 1]?.includes(id), `${owner}/${id}`)
        }
      }).pipe(inItsOwnTime),
    { arbitrary: { runs: 40, size: 20, maxShrinks: 50 } }
  )
})
