/** The sender of deletions, to the intake of the service; and its signature beside the library of Standard Webhooks. */
import { assert, it as test, layer } from "@effect/vitest"
import { Layer, Logger, Redacted } from "effect"
import { Webhook } from "standardwebhooks"
import { vi } from "vitest"
import {
  AuthenticationError,
  ConnectionError,
  InvalidRequestError,
  InvoiceDeletions,
  ServiceUnavailableError
} from "../../../src/client/index.ts"
import { IntakeSecrets } from "../../../src/deletions/IntakeSecrets.ts"
import { layerIntake, layerMemory } from "../../support/deletions/intake.ts"
import { baseUrl, broken, failureOf, json, over, refused, type Step, steps } from "./support.ts"

const secret = `whsec_${Buffer.from("a secret of 24 bytes, or").toString("base64")}`
const invoices = [{ invoice_id: "invoice_1", client_id: null }]

const services = Layer.merge(layerMemory, IntakeSecrets.layerMemory({ org_signed: [Redacted.make(secret)] }))

const receipt = (status: string): Step =>
  json(
    {
      status,
      task_id: "1",
      scheduled_for: "2026-01-01T00:00:00.000Z",
      idempotency_key: "k",
      invoices_count: 1,
      invoice_lines_count: 0,
      received_at: null
    },
    { status: status === "error" ? 503 : 202, headers: { "retry-after": "0" } }
  )

const quiet = Layer.provide(layerIntake(services), Logger.layer([]))

layer(quiet, { excludeTestServices: true })("the sender", (it) => {
  it.effect("schedules a delivery once, however often it is sent", () =>
    over(async ({ fetch }) => {
      const sender = new InvoiceDeletions({ baseUrl, organization: "org_open", fetch })
      const options = { idempotencyKey: "delivery 1" }
      const first = await sender.send({ invoices, invoice_lines: [{ invoice_line_id: "l" }] }, options)
      assert.deepInclude(first, { status: "scheduled", idempotency_key: "delivery 1", invoices_count: 1 })
      const again = await sender.send({ invoices, invoice_lines: [{ invoice_line_id: "l" }] }, options)
      assert.deepStrictEqual(again, { ...first, status: "duplicate" })
      const error = await failureOf(sender.send({ invoices }, options))
      assert.instanceOf(error, InvalidRequestError)
      assert.strictEqual(error.faults[0]?.type, "idempotency_key_reused")
      assert.strictEqual(error.idempotencyKey, "delivery 1")
    })
  )

  it.effect("takes a new key for each delivery that has none", () =>
    over(async ({ fetch, sent }) => {
      const sender = new InvoiceDeletions({ baseUrl, organization: "org_open", fetch })
      const keys = [await sender.send({ invoices }), await sender.send({ invoices })].map(
        (each) => each.idempotency_key
      )
      assert.strictEqual(new Set(keys).size, 2)
      assert.deepStrictEqual(
        sent.map(({ headers }) => headers.get("idempotency-key")),
        keys
      )
    })
  )

  it.effect("signs for an organization that requires it", () =>
    over(async ({ fetch }) => {
      const organization = "org_signed"
      const signing = new InvoiceDeletions({ baseUrl, organization, secret, fetch })
      assert.strictEqual((await signing.send({ invoices: [{ invoice_id: "é\u2028😀" }] })).status, "scheduled")
      const another = `whsec_${Buffer.from("another secret").toString("base64")}`
      const wrong = await failureOf(
        new InvoiceDeletions({ baseUrl, organization, secret: another, fetch }).send({ invoices })
      )
      assert.instanceOf(wrong, AuthenticationError)
      assert.match(wrong.message, /webhook-signature does not match/)
      const absent = await failureOf(new InvoiceDeletions({ baseUrl, organization, fetch }).send({ invoices }))
      assert.match(String(absent), /webhook-id is missing/)
    })
  )

  it.effect("rejects with the faults of a delivery that names nothing", () =>
    over(async ({ fetch }) => {
      const sender = new InvoiceDeletions({ baseUrl, organization: "org_open", fetch })
      const error = await failureOf(sender.send({ invoices: [] }))
      assert.instanceOf(error, InvalidRequestError)
      assert.strictEqual(error.faults[0]?.type, "value_error")
    })
  )
})

test("a delivery that is sent again keeps its key and its body, and is signed with the time of that moment", async () => {
  vi.spyOn(Math, "random").mockReturnValue(0)
  const { fetch, sent } = steps(broken, receipt("error"), receipt("scheduled"))
  const sender = new InvoiceDeletions({ baseUrl, organization: "org_1", secret, fetch })
  assert.strictEqual((await sender.send({ invoices })).status, "scheduled")
  assert.lengthOf(sent, 3)
  const webhook = new Webhook(secret)
  const keys = sent.map(({ body, headers }) => {
    assert.deepStrictEqual(webhook.verify(body, Object.fromEntries(headers)), { invoices })
    assert.strictEqual(headers.get("webhook-id"), headers.get("idempotency-key"))
    return headers.get("idempotency-key")
  })
  assert.strictEqual(new Set(keys).size, 1)
  assert.match(keys[0] ?? "", /^[\x20-\x7e]{1,36}$/)
})

test("a delivery that was not stored says so, with the key to send it again with", async () => {
  const stored = new InvoiceDeletions({
    baseUrl,
    organization: "org_1",
    fetch: steps(receipt("error")).fetch,
    maxRetries: 0
  })
  const busy = await failureOf(stored.send({ invoices }, { idempotencyKey: "k" }))
  assert.instanceOf(busy, ServiceUnavailableError)
  assert.deepInclude(busy, { idempotencyKey: "k", retryAfter: 0, detail: "The delivery was not stored" })
  const unreachable = new InvoiceDeletions({
    baseUrl,
    organization: "org_1",
    fetch: steps(broken).fetch,
    maxRetries: 0
  })
  const error = await failureOf(unreachable.send({ invoices }))
  assert.instanceOf(error, ConnectionError)
  assert.match(error.idempotencyKey ?? "", /^[\da-f-]{36}$/)
})

test("keys and organizations that no header can carry are refused before anything is sent", async () => {
  const { fetch, sent } = steps(refused(500))
  const sender = new InvoiceDeletions({ baseUrl, organization: "org_1", fetch })
  for (const idempotencyKey of ["", " a", "a ", "é", "a\n", "k".repeat(37)]) {
    assert.match(
      String(await failureOf(sender.send({ invoices }, { idempotencyKey }))),
      /idempotencyKey must have 1 to 36/
    )
  }
  for (const organization of ["", "o".repeat(129), "org 1", "é"]) {
    assert.throws(() => new InvoiceDeletions({ baseUrl, organization }), /organization must have 1 to 128/)
  }
  for (const wrong of ["", "whsec_", "whsec_a", "no base64 §"]) {
    assert.throws(() => new InvoiceDeletions({ baseUrl, organization: "o", secret: wrong }), /secret must be whsec_/)
  }
  assert.lengthOf(sent, 0)
})
