/** Deliveries over HTTP: receipts, statuses, the items that are kept, and what is refused. http/Bodies has the rules of every body. */
import { assert, it as test, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { type Fault, faults, patternMismatch, stringTooLong } from "../../../src/api/Faults.ts"
import { makeTaskId } from "../../../src/deletions/Delivery.ts"
import { Scheduler, SchedulerUnavailable } from "../../../src/deletions/Scheduler.ts"
import { deletions, deliver, layerIntake, layerMemory, newKey, path } from "../../support/deletions/intake.ts"
import { start } from "../../support/deletions/tasks.ts"
import type { Sent } from "../../support/inProcess.ts"

/** The receipt of a delivery of an invoice at the start, its fields in the contract's order. */
const receipt = (status: string, key: string, receivedAt: string | null) =>
  `{"status":"${status}","task_id":"${makeTaskId("org_a", key)}","scheduled_for":"2026-01-31T09:31:00.000Z",` +
  `"idempotency_key":"${key}","invoices_count":1,"invoice_lines_count":0,"received_at":${JSON.stringify(receivedAt)}}`

const invoice = { invoice_id: "i1" }
const line = { invoice_line_id: "l1" }

const key = "idempotency-key"
const owner = "x-organization-id"

const most = 256 * 1024

const padded = (size: number) => JSON.stringify(deletions).padEnd(size)

const counted = (json: object, invoices_count: number, invoice_lines_count: number) =>
  [{ json }, { invoices_count, invoice_lines_count }] as const

const keyed = (given: string) => [{ headers: { [key]: given } }, { idempotency_key: given }] as const

const accepted: ReadonlyArray<readonly [rule: string, sent: Sent, receipt: object]> = [
  ["unknown fields", ...counted({ invoices: [{ ...invoice, more: [1] }], more: {}, organization: "org_b" }, 1, 0)],
  ["repeated items", ...counted({ invoices: [invoice, invoice], invoice_lines: [line, line, line] }, 2, 3)],
  ["other ids that are null", ...counted({ invoice_lines: [{ ...line, invoice_id: null, clinic_id: null }] }, 0, 1)],
  ["any characters in an id", ...counted({ invoices: [{ invoice_id: " Ä\n😀 " }] }, 1, 0)],
  ["an Idempotency-Key of 36 characters", ...keyed("k".repeat(36))],
  ["an Idempotency-Key of any printable ASCII", ...keyed("!\"#$ %&'()*+,-./:;<=>?@[\\]^_`{|}~")],
  ["an X-Organization-Id of 128 characters", { headers: { [owner]: "o".repeat(128) } }, {}],
  ["256 KiB", { raw: padded(most) }, {}]
]

const scheduling = (outcome: ReturnType<Scheduler["Service"]["schedule"]>) =>
  Layer.effect(
    Scheduler,
    Effect.map(Scheduler, (scheduler) => ({ ...scheduler, schedule: () => outcome }))
  ).pipe(Layer.provideMerge(layerMemory), layerIntake)

test.effect.each([
  ["beyond the bound of its organization", Effect.succeed({ status: "full" as const }), "5"],
  ["while the store is down", Effect.fail(new SchedulerUnavailable({ message: "secret text of the store" })), "1"]
] as const)("a delivery %s is 503 with Retry-After and a receipt, and 422 if invalid", ([, outcome, retryAfter]) =>
  Effect.gen(function* () {
    yield* TestClock.setTime(start)
    const response = yield* deliver({ headers: { "idempotency-key": "again" } })
    assert.strictEqual(response.status, 503)
    assert.include(response.headers, { "retry-after": retryAfter, "x-error": "intake_unavailable" })
    assert.strictEqual(response.text, receipt("error", "again", null))
    assert.strictEqual((yield* deliver({ json: {} })).status, 422)
  }).pipe(Effect.provide(scheduling(outcome)))
)

type Item = readonly [loc: ReadonlyArray<string | number>, fault: Fault]

/** That a delivery is refused for these faults, and for no others. */
const isRefused = (sent: Sent, ...items: ReadonlyArray<Item>) =>
  Effect.gen(function* () {
    const response = yield* deliver(sent)
    assert.strictEqual(response.status, 422)
    assert.deepStrictEqual(response.json, { detail: items.map(([loc, { type, msg }]) => ({ loc, msg, type })) })
  })

const printable = patternMismatch("^[\\x20-\\x7e]+$")

const badHeader = (header: string, value: string, fault: Fault) =>
  [{ headers: { [header]: value } }, [["header", header], fault]] as const

const refused: ReadonlyArray<readonly [rule: string, sent: Sent, ...items: ReadonlyArray<Item>]> = [
  ["an empty Idempotency-Key", ...badHeader(key, "", faults.stringTooShort)],
  ["an Idempotency-Key of white space", ...badHeader(key, "  ", faults.stringTooShort)],
  ["an Idempotency-Key of 37 characters", ...badHeader(key, "k".repeat(37), stringTooLong(36))],
  ...[key, owner].flatMap((header) =>
    // Node reads bytes as Latin-1.
    ["a\tb", "a\u007fb", "org_\u00e9", "\u00c3\u00a9", "\u0080", "\u00ff"].map(
      (value) => [`${header}: ${JSON.stringify(value)}`, ...badHeader(header, value, printable)] as const
    )
  ),
  ["an empty X-Organization-Id", ...badHeader(owner, "", faults.stringTooShort)],
  ["an X-Organization-Id of 129 characters", ...badHeader(owner, "o".repeat(129), stringTooLong(128))],
  ["both arrays absent", { json: {} }, [["body"], faults.noItems]],
  ["both arrays empty", { json: { invoices: [], invoice_lines: [] } }, [["body"], faults.noItems]],
  ["invoices null", { json: { ...deletions, invoices: null } }, [["body", "invoices"], faults.list]],
  [
    "several faults, all of them, in the order of fields and items",
    {
      json: {
        invoice_lines: [{ clinic_id: 1 }],
        invoices: [{ invoice_id: "i" }, { client_id: "", clinic_id: 2 }, 3, { invoice_id: null }]
      }
    },
    [["body", "invoices", 1, "invoice_id"], faults.missing],
    [["body", "invoices", 1, "clinic_id"], faults.string],
    [["body", "invoices", 1, "client_id"], faults.stringTooShort],
    [["body", "invoices", 2], faults.object],
    [["body", "invoices", 3, "invoice_id"], faults.string],
    [["body", "invoice_lines", 0, "invoice_line_id"], faults.missing],
    [["body", "invoice_lines", 0, "clinic_id"], faults.string]
  ],
  [
    "ids of white space, with U+0000, or with a lone surrogate",
    { json: { invoices: [" \t\n\u00a0", "i\u0000", "i\ud800"].map((invoice_id) => ({ invoice_id })) } },
    [["body", "invoices", 0, "invoice_id"], faults.stringTooShort],
    [["body", "invoices", 1, "invoice_id"], faults.stringUnicode],
    [["body", "invoices", 2, "invoice_id"], faults.stringUnicode]
  ],
  ["a body that is nested too deep", { raw: "[".repeat(17) + "]".repeat(17) }, [["body", 0], faults.json]],
  ["a long body that is no object", { raw: `[${"{},".repeat(50_000)}{}]` }, [["body"], faults.object]],
  ["a query string", { path: `${path}?invoices=1` }, [["query", "invoices"], faults.extra]],
  [
    "both headers missing, both of them",
    { headers: { [key]: undefined, [owner]: undefined } },
    [["header", key], faults.missing],
    [["header", owner], faults.missing]
  ]
]

layer(layerIntake(layerMemory))("a delivery", (it) => {
  it.effect("that is new is 202, and again 200, a duplicate with the first receipt, at any later time", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(start)
      const again = { headers: { [key]: "again" } }
      const first = yield* deliver(again)
      assert.deepStrictEqual([first.status, first.headers["content-type"]], [202, "application/json"])
      assert.strictEqual(first.text, receipt("scheduled", "again", "2026-01-31T09:30:00.000Z"))
      for (const time of ["0 seconds", "1 day"] as const) {
        yield* TestClock.adjust(time)
        const second = yield* deliver(again)
        assert.deepStrictEqual([second.status, second.text], [200, first.text.replace("scheduled", "duplicate")])
      }
    })
  )

  it.effect("uses up its key when it is accepted, for its organization alone: another payload is 422", () =>
    Effect.gen(function* () {
      const given = { [key]: newKey() }
      yield* isRefused({ headers: given, json: {} }, [["body"], faults.noItems])
      assert.strictEqual((yield* deliver({ headers: given })).status, 202)
      const another = { headers: given, json: { invoices: [{ invoice_id: "another" }] } }
      yield* isRefused(another, [["header", key], faults.idempotencyKeyReused])
      assert.strictEqual((yield* deliver({ headers: given })).status, 200)
      assert.strictEqual((yield* deliver({ headers: { ...given, [owner]: "unknown" } })).status, 202)
    })
  )

  it.effect.each(accepted)("is accepted with %s", ([, sent, expected]) =>
    Effect.map(deliver(sent), ({ json, status }) => {
      assert.strictEqual(status, 202)
      assert.deepInclude(json, expected)
    })
  )

  it.effect.each(refused)("is refused with %s", ([, sent, ...expected]) => isRefused(sent, ...expected))

  it.effect("of a byte more than 256 KiB is 413, whatever its headers", () =>
    Effect.gen(function* () {
      for (const given of [{}, { "content-length": String(most + 1) }, { [key]: undefined }]) {
        const response = yield* deliver({ raw: padded(most + 1), headers: given })
        const detail = "The request body is larger than 256 KiB"
        assert.deepStrictEqual([response.status, response.json], [413, { detail }])
      }
    })
  )
})
