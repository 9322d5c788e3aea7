/** The bounds of a delivery, its task id and its fingerprint. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { version } from "uuid"
import { makeDelivery, makeTaskId } from "../../../src/deletions/Delivery.ts"
import { decode } from "../../../src/intake/Handlers.ts"
import type { InvoiceDeletions } from "../../../src/api/IntakeApi.ts"
import { faults, tooLong } from "../../../src/api/Faults.ts"

const owner = { "idempotency-key": "k", "x-organization-id": "o" }

const hexOf = (deletions: InvoiceDeletions) => Buffer.from(makeDelivery(owner, deletions).fingerprint).toString("hex")

const a = { invoice_id: "a", clinic_id: "clinic", client_id: "client" }
const b = { invoice_id: "b" }
const line = { invoice_line_id: "a", invoice_id: "b", clinic_id: "c" }
const lineX = { ...line, invoice_line_id: "x" }

type Pair = readonly [rule: string, one: InvoiceDeletions, other: InvoiceDeletions]

const same: ReadonlyArray<Pair> = [
  ["in another order, repeated", { invoices: [a, b] }, { invoices: [b, a, a] }],
  ["lines in another order, repeated", { invoice_lines: [line, lineX] }, { invoice_lines: [lineX, line, line] }],
  ["an absent array for an empty one", { invoices: [a] }, { invoices: [a], invoice_lines: [] }],
  ["null for an absent id", { invoices: [b] }, { invoices: [{ ...b, clinic_id: null, client_id: null }] }]
]

const different: ReadonlyArray<Pair> = [
  ["one more item", { invoices: [a] }, { invoices: [a, b] }],
  ["another clinic", { invoices: [a] }, { invoices: [{ ...a, clinic_id: "other" }] }],
  ["no clinic", { invoices: [a] }, { invoices: [{ invoice_id: "a", client_id: "client" }] }],
  ["another client", { invoices: [a] }, { invoices: [{ ...a, client_id: "other" }] }],
  ["clinic and client swapped", { invoices: [a] }, { invoices: [{ ...a, clinic_id: "client", client_id: "clinic" }] }],
  ["an id in another case", { invoices: [b] }, { invoices: [{ invoice_id: "B" }] }],
  ["one more item in another case", { invoices: [b] }, { invoices: [{ invoice_id: "B" }, b] }],
  ["an id with a space", { invoices: [b] }, { invoices: [{ invoice_id: "b " }] }],
  ["another Unicode form", { invoices: [{ invoice_id: "é" }] }, { invoices: [{ invoice_id: "e\u0301" }] }],
  ["a line for an invoice", { invoices: [{ invoice_id: "a" }] }, { invoice_lines: [{ invoice_line_id: "a" }] }],
  ["another invoice of a line", { invoice_lines: [line] }, { invoice_lines: [{ ...line, invoice_id: "x" }] }]
]

it.effect("a delivery with no list but others is refused by their names", () =>
  Effect.gen(function* () {
    const { detail } = yield* Effect.flip(decode({ invoice_ids: ["a"], lines: [] }))
    assert.deepStrictEqual(detail, [
      { loc: ["body", "invoice_ids"], ...faults.noLists },
      { loc: ["body", "lines"], ...faults.noLists }
    ])
  })
)

it.effect("a delivery lists a hundred faults at most, the first ones", () =>
  Effect.gen(function* () {
    const invoices = Array.from({ length: 3000 }, () => ({ invoice_id: 1, clinic_id: 2 }))
    const { detail } = yield* Effect.flip(decode({ invoices }))
    assert.lengthOf(detail, 100)
    assert.deepStrictEqual(detail[99], { loc: ["body", "invoices", 49, "clinic_id"], ...faults.string })
  })
)

it.effect("a delivery has at most 3,000 items of both kinds, whatever they are", () =>
  Effect.gen(function* () {
    const invoices = Array.from({ length: 3000 }, () => ({ invoice_id: "i" }))
    assert.lengthOf((yield* decode({ invoices })).invoices ?? [], 3000)
    const { detail } = yield* Effect.flip(decode({ invoices, invoice_lines: [0] }))
    assert.deepStrictEqual(detail, [{ loc: ["body"], ...tooLong(3000, 3001) }])
  })
)

it("a delivery has a task id of its organization and key", () => {
  assert.strictEqual(makeTaskId("org_a", "delivery-1"), makeTaskId("org_a", "delivery-1"))
  assert.notStrictEqual(makeTaskId("a", "bc"), makeTaskId("ab", "c"))
  assert.strictEqual(version(makeTaskId("org_a", "delivery-1")), 5)
  // Stored tasks have ids.
  assert.strictEqual(makeTaskId("org_oakridge", "demo-delivery-1"), "81b8ad4e-04b1-5faa-8a32-d5097856a418")
})

it.each(same)("a delivery has the same fingerprint with %s", (_, one, other) =>
  assert.strictEqual(hexOf(one), hexOf(other))
)

it.each(different)("a delivery has another fingerprint with %s", (_, one, other) =>
  assert.notStrictEqual(hexOf(one), hexOf(other))
)

it("a delivery has the fingerprint of stored tasks", () => {
  const invoices = [
    { invoice_id: "b", clinic_id: "c" },
    { invoice_id: "a", client_id: null },
    { invoice_id: "b", clinic_id: "c", client_id: null },
    { invoice_id: 'é"\u2028' }
  ]
  const hex = hexOf({ invoices, invoice_lines: [{ invoice_line_id: "l", invoice_id: "a" }] })
  assert.strictEqual(hex, "f9a2915879fb9f1b49d2ded97fa634493a34222866ffdc70372e06f0549054e1")
  const alone = "425f8c5ff814837d6a40829116b5ad0b63fd4f4fdc506f8875c08f6c3fc8dc11"
  assert.strictEqual(hexOf({ invoices: [{ invoice_id: "a" }] }), alone)
})
