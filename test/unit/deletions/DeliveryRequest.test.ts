/** A delivery that is pruned, and decoded item by item, is what its schema takes or refuses as a whole. */
import { hash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { prune, wantedBy } from "../../../src/http/JsonPruning.ts"
import { decode, deliveryOf } from "../../../src/deletions/Delivery.ts"
import { InvoiceDeletions } from "../../../src/api/IntakeApi.ts"
import { maximumFaults, validationErrors } from "../../../src/api/Faults.ts"

const Id = Schema.Literals(["invoice_id", "clinic_id", "client_id", "invoice_line_id", "x", "__proto__"])
const Value = Schema.Union([Schema.Literals(["i", "é", "", " ", "\0", "\ud800", 1, true]), Schema.Null, Schema.Json])
const Item = Schema.Union([Schema.Record(Id, Value), Value])
const List = Schema.Union([Schema.Array(Item), Item])
const Body = Schema.Union([
  Schema.Struct({ invoices: List, invoice_lines: List }),
  Schema.Record(Schema.Literals(["invoices", "invoice_lines", "x"]), List),
  Schema.Json
])

const wanted = wantedBy(InvoiceDeletions)
const decodeWhole = Schema.decodeUnknownResult(InvoiceDeletions, { errors: "all" })

/** What the schema says of the whole. An absent list and an empty one mean the same. */
const whole = (text: string) =>
  Result.mapBoth(decodeWhole(JSON.parse(text)), {
    onSuccess: (deletions) => ({ invoices: [], invoice_lines: [], ...deletions }),
    onFailure: ({ issue }) => validationErrors(issue, ["body"]).slice(0, maximumFaults)
  })

const itemByItem = (text: string) =>
  Result.mapError(
    Result.flatMap(prune(text, wanted), (json) => decode(JSON.parse(json))),
    ({ detail }) => detail
  )

const owner = { "idempotency-key": "k", "x-organization-id": "o" }

const hexOf = (deletions: InvoiceDeletions) => Buffer.from(deliveryOf(owner, deletions).fingerprint).toString("hex")

describe("a delivery", () => {
  it.prop("is taken or refused as its schema does", { body: Body }, ({ body }) => {
    const text = JSON.stringify(body, undefined, 1)
    assert.deepStrictEqual(itemByItem(text), whole(text))
  })

  it("has no more faults than are listed", () => {
    const text = JSON.stringify({ invoices: Array.from({ length: 5000 }, () => ({ invoice_id: 1, clinic_id: 2 })) })
    assert.deepStrictEqual(itemByItem(text), whole(text))
  })

  // Tasks are stored with their fingerprints.
  it("has the fingerprint that it always had", () => {
    const deletions = {
      invoices: [
        { invoice_id: "b", clinic_id: "c" },
        { invoice_id: "a", client_id: null },
        { invoice_id: "b", clinic_id: "c", client_id: null },
        { invoice_id: 'é"\u2028' }
      ],
      invoice_lines: [{ invoice_line_id: "l", invoice_id: "a" }]
    }
    assert.strictEqual(
      hexOf(deletions),
      hash(
        "sha256",
        JSON.stringify({
          invoices: [
            { invoice_id: "a", clinic_id: null, client_id: null },
            { invoice_id: "b", clinic_id: "c", client_id: null },
            { invoice_id: 'é"\u2028', clinic_id: null, client_id: null }
          ],
          invoice_lines: [{ invoice_line_id: "l", invoice_id: "a", clinic_id: null }]
        })
      )
    )
    assert.strictEqual(hexOf(deletions), "f9a2915879fb9f1b49d2ded97fa634493a34222866ffdc70372e06f0549054e1")
    assert.strictEqual(
      hexOf({ invoices: [{ invoice_id: "a" }] }),
      "425f8c5ff814837d6a40829116b5ad0b63fd4f4fdc506f8875c08f6c3fc8dc11"
    )
  })
})
