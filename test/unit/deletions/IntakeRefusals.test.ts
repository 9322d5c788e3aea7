/** Deliveries that are refused, over HTTP: headers, items and bodies. `http/Bodies` has the rules of every body. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type Fault, faults, patternMismatch, stringTooLong, tooLong } from "../../../src/api/Faults.ts"
import type { Sent } from "../../support/inProcess.ts"
import { deliver, deletions, layerIntake, layerMemory, newKey, path } from "../../support/deletions/intake.ts"

type Item = readonly [loc: ReadonlyArray<string | number>, fault: Fault]

/** That a delivery is refused for these faults, and for no others. */
const isRefused = (sent: Sent, ...items: ReadonlyArray<Item>) =>
  Effect.gen(function* () {
    const response = yield* deliver(sent)
    assert.strictEqual(response.status, 422)
    assert.deepStrictEqual(response.json, { detail: items.map(([loc, { type, msg }]) => ({ loc, msg, type })) })
  })

const key = "idempotency-key"
const owner = "x-organization-id"
const printable = patternMismatch("^[\\x20-\\x7e]+$")

const headers: ReadonlyArray<readonly [rule: string, header: string, value: string | undefined, fault: Fault]> = [
  ["no Idempotency-Key", key, undefined, faults.missing],
  ["an empty Idempotency-Key", key, "", faults.stringTooShort],
  ["an Idempotency-Key of white space", key, "  ", faults.stringTooShort],
  ["an Idempotency-Key of 37 characters", key, "k".repeat(37), stringTooLong(36)],
  ["an Idempotency-Key with a letter that is not ASCII", key, "clé", printable],
  ["an Idempotency-Key with a tab", key, "a\tb", printable],
  ["an Idempotency-Key with a control character", key, "a\u007fb", printable],
  ["no X-Organization-Id", owner, undefined, faults.missing],
  ["an empty X-Organization-Id", owner, "", faults.stringTooShort],
  ["an X-Organization-Id of 129 characters", owner, "o".repeat(129), stringTooLong(128)]
]

const acceptedHeaders: ReadonlyArray<readonly [rule: string, header: string, value: string]> = [
  ["an Idempotency-Key of 36 characters", key, "k".repeat(36)],
  ["an Idempotency-Key of any printable ASCII", key, "!\"#$ %&'()*+,-./:;<=>?@[\\]^_`{|}~"],
  ["an X-Organization-Id of 128 characters", owner, "o".repeat(128)]
]

/** What is wrong with ids, and what is said of each. */
const ids = [
  ["empty", "", faults.stringTooShort],
  ["white space", " \t\n\u00a0", faults.stringTooShort],
  ["a number", 1, faults.string],
  ["an array", ["i1"], faults.string],
  ["with U+0000", "i\u0000", faults.stringUnicode],
  ["with a lone surrogate", "i\ud800", faults.stringUnicode]
] as const

const fields = [
  ["invoices", "invoice_id"],
  ["invoice_lines", "invoice_line_id"],
  ["invoices", "clinic_id"],
  ["invoices", "client_id"],
  ["invoice_lines", "invoice_id"],
  ["invoice_lines", "clinic_id"]
] as const

const named = { invoices: { invoice_id: "i" }, invoice_lines: { invoice_line_id: "l" } } as const

const items = [
  ...fields.map(([list, field]) => ["empty", list, field, "", faults.stringTooShort] as const),
  ...ids.map(([what, value, fault]) => [what, "invoices", "invoice_id", value, fault] as const),
  ...fields.slice(0, 2).map(([list, field]) => ["null", list, field, null, faults.string] as const)
]

/** Bodies, and what is said of them. */
const bodies: ReadonlyArray<readonly [rule: string, sent: Sent, ...items: ReadonlyArray<Item>]> = [
  ["both arrays absent", { json: {} }, [["body"], faults.noItems]],
  ["both arrays empty", { json: { invoices: [], invoice_lines: [] } }, [["body"], faults.noItems]],
  ["invoices null", { json: { ...deletions, invoices: null } }, [["body", "invoices"], faults.list]],
  ["an item that is a string", { json: { invoices: ["i"] } }, [["body", "invoices", 0], faults.object]],
  ["an invoice without its id", { json: { invoices: [{}] } }, [["body", "invoices", 0, "invoice_id"], faults.missing]],
  [
    "a line without its id",
    { json: { invoice_lines: [{ invoice_id: "i" }] } },
    [["body", "invoice_lines", 0, "invoice_line_id"], faults.missing]
  ],
  [
    "several faults, all of them, in the order of fields and items",
    {
      json: {
        invoice_lines: [{ clinic_id: 1 }],
        invoices: [{ invoice_id: "i" }, { client_id: "", clinic_id: 2 }, 3, { invoice_id: " " }]
      }
    },
    [["body", "invoices", 1, "invoice_id"], faults.missing],
    [["body", "invoices", 1, "clinic_id"], faults.string],
    [["body", "invoices", 1, "client_id"], faults.stringTooShort],
    [["body", "invoices", 2], faults.object],
    [["body", "invoices", 3, "invoice_id"], faults.stringTooShort],
    [["body", "invoice_lines", 0, "invoice_line_id"], faults.missing],
    [["body", "invoice_lines", 0, "clinic_id"], faults.string]
  ],
  [
    "too many items to be counted",
    { raw: `{"invoices":[${"0,".repeat(1_000_000)}` },
    [["body"], tooLong(10_000, 10_001)]
  ],
  [
    "a long body that is no JSON at its end",
    { raw: `{"x":[${"[],".repeat(50_000)}` },
    [["body", 150_006], faults.json]
  ],
  ["a long body that is no object", { raw: `[${"{},".repeat(50_000)}{}]` }, [["body"], faults.object]],
  ["a query string", { path: `${path}?invoices=1` }, [["query", "invoices"], faults.extra]],
  ["an empty body", { raw: "" }, [["body"], faults.missing]],
  ["no JSON", { raw: `{"invoices":[}` }, [["body", 13], faults.json]],
  ["no content type", { headers: { "content-type": undefined } }, [["header", "content-type"], faults.contentType]],
  [
    "both headers missing, both of them",
    { headers: { [key]: undefined, [owner]: undefined } },
    [["header", key], faults.missing],
    [["header", owner], faults.missing]
  ]
]

const mebibyte = 1024 * 1024

/** A delivery of so many bytes. */
const padded = (size: number) => {
  const json = JSON.stringify(deletions)
  return `${json}${" ".repeat(size - json.length)}`
}

layer(layerIntake(layerMemory))("a delivery", (it) => {
  it.effect.each(headers)("is refused with %s", ([, header, value, fault]) =>
    isRefused({ headers: { [header]: value } }, [["header", header], fault])
  )

  it.effect.each(acceptedHeaders)("is accepted with %s", ([, header, value]) =>
    Effect.gen(function* () {
      const response = yield* deliver({ headers: { [header]: value } })
      assert.strictEqual(response.status, 202)
      if (header === key) assert.deepInclude(response.json, { idempotency_key: value })
    })
  )

  it.effect.each(items)("is refused with an id that is %s: %s, %s", ([, list, field, value, fault]) =>
    isRefused({ json: { [list]: [named[list], { ...named[list], [field]: value }] } }, [
      ["body", list, 1, field],
      fault
    ])
  )

  it.effect.each(bodies)("is refused with %s", ([, sent, ...expected]) => isRefused(sent, ...expected))

  it.effect("of 10,000 items is accepted", () =>
    Effect.gen(function* () {
      const invoices = Array.from({ length: 5000 }, (_, at) => ({ invoice_id: `i${at}`, clinic_id: "c" }))
      const invoice_lines = Array.from({ length: 5000 }, (_, at) => ({ invoice_line_id: `l${at}`, clinic_id: "c" }))
      const response = yield* deliver({ json: { invoices, invoice_lines } })
      assert.strictEqual(response.status, 202)
      assert.deepInclude(response.json, { invoices_count: 5000, invoice_lines_count: 5000 })
    })
  )

  it.effect("with a Content-Encoding is 415, and says what is taken", () =>
    Effect.gen(function* () {
      const response = yield* deliver({ headers: { "content-encoding": "gzip", [key]: undefined } })
      assert.strictEqual(response.status, 415)
      assert.deepStrictEqual(response.json, { detail: "Content-Encoding should be identity" })
      assert.strictEqual(response.headers["accept-encoding"], "identity")
    })
  )

  it.effect("that was refused has not used up its key", () =>
    Effect.gen(function* () {
      const given = { [key]: newKey() }
      yield* isRefused({ headers: given, json: { invoices: [{}] } }, [
        ["body", "invoices", 0, "invoice_id"],
        faults.missing
      ])
      assert.strictEqual((yield* deliver({ headers: given })).status, 202)
    })
  )

  it.effect("of 4 MiB is accepted, and a byte more is 413", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* deliver({ raw: padded(4 * mebibyte) })).status, 202)
      for (const headersOf of [{}, { "content-length": String(4 * mebibyte + 1) }]) {
        const response = yield* deliver({ raw: padded(4 * mebibyte + 1), headers: headersOf })
        assert.strictEqual(response.status, 413)
        assert.deepStrictEqual(response.json, { detail: "The request body is larger than 4194304 bytes" })
      }
    })
  )

  it.effect("is 413 before anything else of the body or the headers is looked at", () =>
    Effect.gen(function* () {
      const response = yield* deliver({ raw: " ".repeat(5 * mebibyte), headers: { [key]: undefined } })
      assert.strictEqual(response.status, 413)
    })
  )
})
