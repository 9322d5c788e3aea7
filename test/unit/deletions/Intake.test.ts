/** Deliveries over HTTP: what is accepted, the responses, and what is stored. Decisions: "Invoice deletion intake". */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { validate, version } from "uuid"
import type { Delivery } from "../../../src/deletions/Delivery.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import * as SchedulerMemory from "../../../src/deletions/SchedulerMemory.ts"
import { SchedulerUnavailable } from "../../../src/deletions/Task.ts"
import { faults } from "../../../src/api/Faults.ts"
import { send } from "../../http/inProcess.ts"
import {
  deliver,
  deletions,
  layerIntake,
  layerMemory,
  newKey,
  path,
  recording
} from "../../support/deletions/intake.ts"
import { delay, start } from "../../support/deletions/support.ts"

/** The body of a response, its fields in the contract's order. */
const body = (status: string, taskId: string, rest: string) => `{"status":"${status}","task_id":"${taskId}",${rest}}`

const taskIdIn = (text: string) => /"task_id":"([^"]*)"/.exec(text)?.[1] ?? ""

const invoice = { invoice_id: "i1" }
const line = { invoice_line_id: "l1" }

/** Accepted: what is sent, how many items were received, and what is kept of them. */
const accepted: ReadonlyArray<
  readonly [rule: string, sent: unknown, counts: readonly [number, number], kept: Delivery["deletions"]]
> = [
  [
    "invoices alone",
    { invoices: [{ invoice_id: "i1", clinic_id: "c1", client_id: "k1" }] },
    [1, 0],
    { invoices: [{ invoice_id: "i1", clinic_id: "c1", client_id: "k1" }], invoice_lines: [] }
  ],
  [
    "lines alone",
    { invoice_lines: [{ invoice_line_id: "l1", invoice_id: "i1", clinic_id: "c1" }] },
    [0, 1],
    { invoices: [], invoice_lines: [{ invoice_line_id: "l1", invoice_id: "i1", clinic_id: "c1" }] }
  ],
  [
    "invoices and lines, the other ids absent",
    { invoices: [invoice], invoice_lines: [line] },
    [1, 1],
    {
      invoices: [{ ...invoice, clinic_id: null, client_id: null }],
      invoice_lines: [{ ...line, invoice_id: null, clinic_id: null }]
    }
  ],
  [
    "the other ids null, and one of the arrays empty",
    { invoices: [{ ...invoice, clinic_id: null, client_id: null }], invoice_lines: [] },
    [1, 0],
    { invoices: [{ ...invoice, clinic_id: null, client_id: null }], invoice_lines: [] }
  ],
  [
    "fields that nobody knows, which are kept out",
    { invoices: [{ ...invoice, more: [1], invoice_line_id: "x" }], more: { a: null }, organization: "org_b" },
    [1, 0],
    { invoices: [{ ...invoice, clinic_id: null, client_id: null }], invoice_lines: [] }
  ],
  [
    "repeated items, counted as received",
    { invoices: [invoice, invoice, { invoice_id: "i0" }, invoice], invoice_lines: [line, line] },
    [4, 2],
    {
      invoices: [
        { invoice_id: "i0", clinic_id: null, client_id: null },
        { ...invoice, clinic_id: null, client_id: null }
      ],
      invoice_lines: [{ ...line, invoice_id: null, clinic_id: null }]
    }
  ],
  [
    "ids as they are, with white space around them and any characters",
    { invoices: [{ invoice_id: " Ä\n😀 " }] },
    [1, 0],
    { invoices: [{ invoice_id: " Ä\n😀 ", clinic_id: null, client_id: null }], invoice_lines: [] }
  ]
]

const deliveries: Array<Delivery> = []

layer(layerIntake(Layer.merge(layerMemory, recording(deliveries))))("a delivery", (it) => {
  it.effect("that is new is 202, scheduled a delay after it was received", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(start)
      const response = yield* deliver({ headers: { "idempotency-key": "new one" } })
      assert.strictEqual(response.status, 202)
      assert.strictEqual(response.headers["content-type"], "application/json")
      const taskId = taskIdIn(response.text)
      assert.isTrue(validate(taskId))
      assert.strictEqual(version(taskId), 5)
      const rest =
        '"scheduled_for":"2026-01-31T09:31:00.000Z","idempotency_key":"new one","invoices_count":1,' +
        '"invoice_lines_count":0,"received_at":"2026-01-31T09:30:00.000Z"'
      assert.strictEqual(response.text, body("scheduled", taskId, rest))
    })
  )

  it.effect("that is sent again is 200, a duplicate with all else of the first response, at any later time", () =>
    Effect.gen(function* () {
      const headers = { "idempotency-key": newKey() }
      const json = { invoices: [invoice, { invoice_id: "i2" }], invoice_lines: [line] }
      const first = yield* deliver({ headers, json })
      for (const time of ["0 seconds", "1 minute", "1 day"] as const) {
        yield* TestClock.adjust(time)
        const again = yield* deliver({
          headers,
          json: { invoice_lines: [line, line], invoices: [{ invoice_id: "i2", more: 1 }, invoice, invoice] }
        })
        assert.strictEqual(again.status, 200)
        assert.strictEqual(again.text, first.text.replace('"scheduled"', '"duplicate"'))
      }
    })
  )

  it.effect("of another payload with a key that was used is 422, and nothing of it is kept", () =>
    Effect.gen(function* () {
      const headers = { "idempotency-key": newKey() }
      const first = yield* deliver({ headers })
      const other = yield* deliver({ headers, json: { invoices: [invoice] } })
      assert.strictEqual(other.status, 422)
      assert.deepStrictEqual(other.json, {
        detail: [
          {
            loc: ["header", "idempotency-key"],
            msg: "This Idempotency-Key was used with a different payload",
            type: "idempotency_key_reused"
          }
        ]
      })
      const again = yield* deliver({ headers })
      assert.strictEqual(again.text, first.text.replace('"scheduled"', '"duplicate"'))
    })
  )

  it.effect("of another organization with the same key is another task", () =>
    Effect.gen(function* () {
      const key = newKey()
      const ids = yield* Effect.forEach(["org_a", "org_b", "ORG_A", "nobody knows it"], (organization) =>
        Effect.map(
          deliver({ headers: { "idempotency-key": key, "x-organization-id": organization } }),
          ({ status, text }) => [status, taskIdIn(text)] as const
        )
      )
      assert.deepStrictEqual(new Set(ids.map(([status]) => status)), new Set([202]))
      assert.strictEqual(new Set(ids.map(([, id]) => id)).size, 4)
    })
  )

  it.effect("tells the organization from the key", () =>
    Effect.gen(function* () {
      const [one, other] = yield* Effect.forEach(
        [
          ["a", "bc"],
          ["ab", "c"]
        ],
        ([organization, key]) =>
          Effect.map(deliver({ headers: { "idempotency-key": key, "x-organization-id": organization } }), ({ text }) =>
            taskIdIn(text)
          )
      )
      assert.notStrictEqual(one, other)
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

  it.effect("of 10,000 items is accepted, of both kinds together", () =>
    Effect.gen(function* () {
      const response = yield* deliver({
        json: {
          invoices: Array.from({ length: 5000 }, () => invoice),
          invoice_lines: Array.from({ length: 5000 }, (_, index) => ({ invoice_line_id: `l${index}` }))
        }
      })
      assert.strictEqual(response.status, 202)
      assert.deepInclude(response.json, { invoices_count: 5000, invoice_lines_count: 5000 })
    })
  )

  it.effect("without items does not use up its key", () =>
    Effect.gen(function* () {
      const headers = { "idempotency-key": newKey() }
      const empty = yield* deliver({ headers, json: { invoices: [], invoice_lines: [] } })
      assert.strictEqual(empty.status, 422)
      assert.strictEqual((yield* deliver({ headers })).status, 202)
    })
  )

  it.effect.each(["GET", "PUT", "DELETE"])("is a POST: %s is 405", (method) =>
    Effect.gen(function* () {
      const response = yield* send({ path, method })
      assert.strictEqual(response.status, 405)
      assert.strictEqual(response.headers["allow"], "POST")
    })
  )
})

const bounded = Layer.effect(
  Scheduler,
  SchedulerMemory.make(delay, undefined, {
    known: { tasks: 1, bytes: 1e6 },
    unknown: { tasks: 1, bytes: 1e6 }
  })
)

layer(layerIntake(Layer.merge(layerMemory, bounded)))("a delivery of an organization with too much pending", (it) => {
  it.effect("is 503 with the documented body and Retry-After, and one that is stored is a duplicate", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(start)
      const first = { "idempotency-key": "first" }
      assert.strictEqual((yield* deliver({ headers: first })).status, 202)
      const response = yield* deliver({ headers: { "idempotency-key": "again" } })
      assert.strictEqual(response.status, 503)
      assert.strictEqual(response.headers["retry-after"], "5")
      const rest =
        '"scheduled_for":"2026-01-31T09:31:00.000Z","idempotency_key":"again","invoices_count":1,' +
        '"invoice_lines_count":0,"received_at":null'
      assert.strictEqual(response.text, body("error", taskIdIn(response.text), rest))
      assert.strictEqual((yield* deliver({ headers: first })).status, 200)
    })
  )
})

const down = Layer.effect(
  Scheduler,
  Effect.map(Scheduler, (scheduler) => ({
    ...scheduler,
    schedule: () => Effect.fail(new SchedulerUnavailable({ message: "secret text of the store" }))
  }))
).pipe(Layer.provide(layerMemory))

layer(layerIntake(Layer.merge(layerMemory, down)))("a delivery while the store is down", (it) => {
  it.effect("is 503 with the documented body, as if it were received now, and was not", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(start)
      const headers = { "idempotency-key": "again" }
      const response = yield* deliver({ headers })
      assert.strictEqual(response.status, 503)
      assert.match(response.headers["retry-after"] ?? "", /^[1-9]\d*$/)
      const rest =
        '"scheduled_for":"2026-01-31T09:31:00.000Z","idempotency_key":"again","invoices_count":1,' +
        '"invoice_lines_count":0,"received_at":null'
      assert.strictEqual(response.text, body("error", taskIdIn(response.text), rest))
      const stored = yield* deliver({ headers }).pipe(Effect.provide(Layer.fresh(layerIntake(layerMemory))))
      assert.strictEqual(stored.status, 202)
      assert.strictEqual(taskIdIn(response.text), taskIdIn(stored.text))
    })
  )

  it.effect("is refused first when it is not as it should be", () =>
    Effect.gen(function* () {
      const response = yield* deliver({ json: {} })
      assert.strictEqual(response.status, 422)
      assert.deepStrictEqual(response.json, { detail: [{ loc: ["body"], ...faults.noItems }] })
      assert.strictEqual((yield* deliver({ json: deletions, headers: { "idempotency-key": "" } })).status, 422)
    })
  )
})
