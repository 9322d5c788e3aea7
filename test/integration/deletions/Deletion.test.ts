/**
 * Which invoices and lines a deletion deletes, and what its outcome counts, in the database. Decisions: "Invoice deletion
 * intake", what the task does.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { InvoiceDeletions } from "../../../src/api/IntakeApi.ts"
import { inItsOwnTime, overPostgres } from "../../support/deletions/support.ts"
import { deleted, deletedIds, seedInvoices, outcomeOf, rowsOf } from "../../support/deletions/invoiceFixture.ts"

/** Rule, deletion, the ids that are deleted then, and what the outcome counts. */
type Case = readonly [
  rule: string,
  deletions: InvoiceDeletions,
  deleted: ReadonlyArray<string>,
  counts: Parameters<typeof outcomeOf>[0]
]

const cases: ReadonlyArray<Case> = [
  [
    "an invoice with all its lines",
    { invoices: [{ invoice_id: "i1" }] },
    ["i1", "i1a", "i1b"],
    { invoices: { deleted: 1 }, lines_of_invoices: 2 }
  ],
  ["an invoice without lines", { invoices: [{ invoice_id: "i4" }] }, ["i4"], { invoices: { deleted: 1 } }],
  [
    "an invoice that names its home clinic",
    { invoices: [{ invoice_id: "i1", clinic_id: "home" }] },
    ["i1", "i1a", "i1b"],
    { invoices: { deleted: 1 }, lines_of_invoices: 2 }
  ],
  [
    "an invoice that names its servicing clinic",
    { invoices: [{ invoice_id: "i1", clinic_id: "servicing" }] },
    ["i1", "i1a", "i1b"],
    { invoices: { deleted: 1 }, lines_of_invoices: 2 }
  ],
  [
    "an invoice that names its client",
    { invoices: [{ invoice_id: "i1", client_id: "client" }] },
    ["i1", "i1a", "i1b"],
    { invoices: { deleted: 1 }, lines_of_invoices: 2 }
  ],
  [
    "no invoice that names another clinic",
    { invoices: [{ invoice_id: "i1", clinic_id: "other" }] },
    [],
    { invoices: { clinic_mismatch: 1 } }
  ],
  [
    "no invoice that names another client",
    { invoices: [{ invoice_id: "i1", client_id: "other" }] },
    [],
    { invoices: { client_mismatch: 1 } }
  ],
  [
    "no invoice that names its clinic and another client",
    { invoices: [{ invoice_id: "i1", clinic_id: "home", client_id: "other" }] },
    [],
    { invoices: { client_mismatch: 1 } }
  ],
  [
    "no invoice that names a clinic and has no such",
    { invoices: [{ invoice_id: "i4", clinic_id: "home" }] },
    [],
    { invoices: { clinic_mismatch: 1 } }
  ],
  [
    "no invoice that names a client and has none",
    { invoices: [{ invoice_id: "i2", client_id: "client" }] },
    [],
    { invoices: { client_mismatch: 1 } }
  ],
  [
    "no invoice in another case",
    { invoices: [{ invoice_id: "I1", clinic_id: "home" }] },
    [],
    { invoices: { not_found: 1 } }
  ],
  [
    "no line for an invoice, and no invoice for a line",
    { invoices: [{ invoice_id: "i1a" }], invoice_lines: [{ invoice_line_id: "i1" }] },
    [],
    { invoices: { not_found: 1 }, invoice_lines: { not_found: 1 } }
  ],
  ["a line alone", { invoice_lines: [{ invoice_line_id: "i1a" }] }, ["i1a"], { invoice_lines: { deleted: 1 } }],
  [
    "a line that names its invoice and its clinic",
    { invoice_lines: [{ invoice_line_id: "i1a", invoice_id: "i1", clinic_id: "home" }] },
    ["i1a"],
    { invoice_lines: { deleted: 1 } }
  ],
  [
    "a line whose invoice nobody has",
    { invoice_lines: [{ invoice_line_id: "stray", invoice_id: "nowhere" }] },
    ["stray"],
    { invoice_lines: { deleted: 1 } }
  ],
  [
    "no line that names another invoice",
    { invoice_lines: [{ invoice_line_id: "i1a", invoice_id: "i2" }] },
    [],
    { invoice_lines: { invoice_mismatch: 1 } }
  ],
  [
    "no line that names an invoice and has none",
    { invoice_lines: [{ invoice_line_id: "loose", invoice_id: "i1" }] },
    [],
    { invoice_lines: { invoice_mismatch: 1 } }
  ],
  [
    "no line that names another clinic, its invoice's included",
    { invoice_lines: [{ invoice_line_id: "i1a", clinic_id: "servicing" }] },
    [],
    { invoice_lines: { clinic_mismatch: 1 } }
  ],
  [
    "no line that names a clinic and has none",
    { invoice_lines: [{ invoice_line_id: "i2a", clinic_id: "home" }] },
    [],
    { invoice_lines: { clinic_mismatch: 1 } }
  ],
  [
    "no lines of an invoice that names nothing",
    { invoices: [{ invoice_id: "nowhere" }] },
    [],
    { invoices: { not_found: 1 } }
  ],
  [
    "an invoice's line with its invoice, though the line alone does not fit",
    { invoices: [{ invoice_id: "i1" }], invoice_lines: [{ invoice_line_id: "i1a", clinic_id: "other" }] },
    ["i1", "i1a", "i1b"],
    { invoices: { deleted: 1 }, invoice_lines: { clinic_mismatch: 1 }, lines_of_invoices: 2 }
  ],
  [
    "a line alone, though its invoice does not fit",
    { invoices: [{ invoice_id: "i1", clinic_id: "other" }], invoice_lines: [{ invoice_line_id: "i1a" }] },
    ["i1a"],
    { invoices: { clinic_mismatch: 1 }, invoice_lines: { deleted: 1 } }
  ],
  [
    "an invoice that is named twice, once as it is",
    {
      invoices: [
        { invoice_id: "i1", clinic_id: "other" },
        { invoice_id: "i1", clinic_id: "home" }
      ]
    },
    ["i1", "i1a", "i1b"],
    { invoices: { deleted: 1, clinic_mismatch: 1 }, lines_of_invoices: 2 }
  ],
  [
    "repeated items once",
    { invoices: [{ invoice_id: "i4" }, { invoice_id: "i4" }] },
    ["i4"],
    { invoices: { deleted: 1 } }
  ],
  [
    "what fits of many items, and counts the others by their reasons",
    {
      invoices: [
        { invoice_id: "i1" },
        { invoice_id: "i2", clinic_id: "home" },
        { invoice_id: "i3", clinic_id: "x" },
        { invoice_id: "i4", client_id: "x" },
        { invoice_id: "x" },
        { invoice_id: "y" }
      ],
      invoice_lines: [
        { invoice_line_id: "i1a" },
        { invoice_line_id: "loose" },
        { invoice_line_id: "i3a", clinic_id: "x" },
        { invoice_line_id: "stray", invoice_id: "x" },
        { invoice_line_id: "x" }
      ]
    },
    ["i1", "i1a", "i1b", "i2", "i2a", "loose"],
    {
      invoices: { deleted: 2, clinic_mismatch: 1, client_mismatch: 1, not_found: 2 },
      invoice_lines: { deleted: 2, clinic_mismatch: 1, invoice_mismatch: 1, not_found: 1 },
      lines_of_invoices: 3
    }
  ]
]

overPostgres("a deletion", (it) => {
  it.effect.each(cases)("deletes %s", ([, deletions, ids, counts]) =>
    Effect.gen(function* () {
      const sql = yield* seedInvoices
      const before = yield* rowsOf(sql)
      assert.deepStrictEqual(yield* deleted(deletions), outcomeOf(counts))
      const after = yield* rowsOf(sql)
      assert.deepStrictEqual(deletedIds(after), ids)
      const untouched = (row: { readonly owner: string; readonly id: string }) =>
        row.owner !== "org_a" || !ids.includes(row.id)
      assert.deepStrictEqual(after.filter(untouched), before.filter(untouched))
    }).pipe(inItsOwnTime)
  )

  it.effect("deletes what its own organization has, and nothing for one that has nothing", () =>
    Effect.gen(function* () {
      const sql = yield* seedInvoices
      const deletions = { invoices: [{ invoice_id: "i4" }], invoice_lines: [{ invoice_line_id: "loose" }] }
      const nothing = outcomeOf({ invoices: { not_found: 1 }, invoice_lines: { not_found: 1 } })
      assert.deepStrictEqual(yield* deleted(deletions, "org_nobody"), nothing)
      assert.isEmpty(deletedIds(yield* rowsOf(sql)))
      yield* deleted(deletions, "org_b")
      assert.deepStrictEqual(deletedIds(yield* rowsOf(sql)), ["org_b/i4", "org_b/loose"])
    }).pipe(inItsOwnTime)
  )
})
