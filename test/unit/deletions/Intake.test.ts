/** Deliveries over HTTP: receipts, statuses, and the items that are kept. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { type Delivery, taskIdOf } from "../../../src/deletions/Delivery.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { ScheduleOutcome, SchedulerUnavailable } from "../../../src/deletions/Task.ts"
import { send } from "../../support/inProcess.ts"
import { deliver, layerIntake, layerMemory, newKey, path, recording } from "../../support/deletions/intake.ts"
import { start } from "../../support/deletions/support.ts"

/** The receipt of a delivery of an invoice at the start, its fields in the contract's order. */
const receipt = (status: string, key: string, receivedAt: string | null) =>
  `{"status":"${status}","task_id":"${taskIdOf("org_a", key)}","scheduled_for":"2026-01-31T09:31:00.000Z",` +
  `"idempotency_key":"${key}","invoices_count":1,"invoice_lines_count":0,"received_at":${JSON.stringify(receivedAt)}}`

const invoice = { invoice_id: "i1" }
const line = { invoice_line_id: "l1" }
const wholeInvoice = { invoice_id: "i1", clinic_id: null, client_id: null }
const wholeLine = { invoice_line_id: "l1", invoice_id: null, clinic_id: null }

const namingAll = {
  invoices: [{ invoice_id: "i1", clinic_id: "c1", client_id: "k1" }],
  invoice_lines: [{ invoice_line_id: "l1", invoice_id: "i1", clinic_id: "c1" }]
}

const accepted: ReadonlyArray<
  readonly [rule: string, sent: unknown, counts: readonly [number, number], kept: Delivery["deletions"]]
> = [
  ["all ids", namingAll, [1, 1], namingAll],
  [
    "the other ids absent or null",
    { invoices: [wholeInvoice], invoice_lines: [line] },
    [1, 1],
    { invoices: [wholeInvoice], invoice_lines: [wholeLine] }
  ],
  [
    "unknown fields, which are left out",
    { invoices: [{ ...invoice, more: [1], invoice_line_id: "x" }], more: { a: null }, organization: "org_b" },
    [1, 0],
    { invoices: [wholeInvoice], invoice_lines: [] }
  ],
  [
    "repeated items, counted as received and kept once",
    { invoices: [invoice, invoice, { invoice_id: "i0" }, invoice], invoice_lines: [line, line] },
    [4, 2],
    { invoices: [{ ...wholeInvoice, invoice_id: "i0" }, wholeInvoice], invoice_lines: [wholeLine] }
  ],
  [
    "any characters in an id",
    { invoices: [{ invoice_id: " Ä\n😀 " }] },
    [1, 0],
    { invoices: [{ ...wholeInvoice, invoice_id: " Ä\n😀 " }], invoice_lines: [] }
  ]
]

const deliveries: Array<Delivery> = []

layer(layerIntake(Layer.merge(layerMemory, recording(deliveries))))("a delivery", (it) => {
  it.effect("that is new is 202, and again 200, a duplicate with the first receipt, at any later time", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(start)
      const headers = { "idempotency-key": "again" }
      const first = yield* deliver({ headers })
      assert.deepStrictEqual([first.status, first.headers["content-type"]], [202, "application/json"])
      assert.strictEqual(first.text, receipt("scheduled", "again", "2026-01-31T09:30:00.000Z"))
      for (const time of ["0 seconds", "1 day"] as const) {
        yield* TestClock.adjust(time)
        const again = yield* deliver({ headers })
        assert.deepStrictEqual([again.status, again.text], [200, first.text.replace("scheduled", "duplicate")])
      }
    })
  )

  it.effect("of another payload with a used key is 422, and of another organization 202", () =>
    Effect.gen(function* () {
      const key = { "idempotency-key": newKey() }
      yield* deliver({ headers: key })
      const other = yield* deliver({ headers: key, json: { invoices: [{ invoice_id: "another" }] } })
      const msg = "This Idempotency-Key was used with a different payload"
      assert.deepStrictEqual(
        [other.status, other.json],
        [422, { detail: [{ loc: ["header", "idempotency-key"], msg, type: "idempotency_key_reused" }] }]
      )
      assert.strictEqual((yield* deliver({ headers: key })).status, 200)
      assert.strictEqual((yield* deliver({ headers: { ...key, "x-organization-id": "unknown" } })).status, 202)
    })
  )

  it.effect.each(accepted)("is accepted with %s", ([, json, [invoices, lines], kept]) =>
    Effect.gen(function* () {
      const response = yield* deliver({ json })
      assert.strictEqual(response.status, 202)
      assert.deepInclude(response.json, { invoices_count: invoices, invoice_lines_count: lines })
      assert.deepStrictEqual(deliveries.at(-1)?.deletions, kept)
    })
  )

  it.effect("is a POST", () =>
    Effect.gen(function* () {
      const response = yield* send({ path, method: "PUT" })
      assert.deepStrictEqual([response.status, response.headers["allow"]], [405, "POST"])
    })
  )
})

const scheduling = (schedule: Scheduler["Service"]["schedule"]) =>
  Layer.effect(
    Scheduler,
    Effect.map(Scheduler, (scheduler) => ({ ...scheduler, schedule }))
  ).pipe(Layer.provide(layerMemory))

const notStored = [
  ["beyond the bound of its organization", Effect.succeed(ScheduleOutcome.Full()), "5"],
  ["while the store is down", Effect.fail(new SchedulerUnavailable({ message: "secret text of the store" })), "1"]
] as const

for (const [when, outcome, retryAfter] of notStored) {
  layer(
    layerIntake(
      Layer.merge(
        layerMemory,
        scheduling(() => outcome)
      )
    )
  )(`a delivery ${when}`, (it) => {
    it.effect("is 503 with Retry-After and a receipt, and 422 if it is not valid", () =>
      Effect.gen(function* () {
        yield* TestClock.setTime(start)
        const response = yield* deliver({ headers: { "idempotency-key": "again" } })
        assert.deepStrictEqual([response.status, response.headers["retry-after"]], [503, retryAfter])
        assert.strictEqual(response.text, receipt("error", "again", null))
        assert.strictEqual((yield* deliver({ json: {} })).status, 422)
      })
    )
  })
}
