/** The sender of deletions, over the intake of the service; and its signature against the library of Standard Webhooks. */
import { assert, it as test, layer } from "@effect/vitest"
import { Layer, Logger, Redacted } from "effect"
import { Webhook } from "standardwebhooks"
import { vi } from "vitest"
import {
  AuthenticationError,
  ConnectionError,
  InvalidRequestError,
  InvoiceDeletions,
  type InvoiceDeletionsOptions,
  ServiceUnavailableError
} from "../../../src/client/index.ts"
import { IntakeSecrets } from "../../../src/deletions/IntakeSecrets.ts"
import { layerIntake, layerMemory } from "../../support/deletions/intake.ts"
import { baseUrl, broken, failureOf, json, over, refused, type Step, steps } from "./support.ts"

const secret = `whsec_${Buffer.from("a secret of 24 bytes, or").toString("base64")}`
const invoices = [{ invoice_id: "invoice_1", client_id: null }]

const senderOf = (options: Partial<InvoiceDeletionsOptions>) =>
  new InvoiceDeletions({ baseUrl, organization: "org_open", maxRetries: 0, ...options })

const receipt = (status: string): Step =>
  json({ status, task_id: "1" }, { status: status === "error" ? 503 : 202, headers: { "retry-after": "0" } })

const secrets = IntakeSecrets.layerMemory({ org_signed: [Redacted.make(secret)] })
const quiet = Layer.provide(layerIntake(Layer.merge(layerMemory, secrets)), Logger.layer([]))

layer(quiet, { excludeTestServices: true })("the sender", (it) => {
  it.effect("schedules a delivery once for its key, and refuses another one with that key", () =>
    over(async ({ fetch }) => {
      const sender = senderOf({ fetch })
      const options = { idempotencyKey: "delivery 1" }
      const first = await sender.send({ invoices, invoice_lines: [{ invoice_line_id: "l" }] }, options)
      assert.deepInclude(first, { status: "scheduled", idempotency_key: "delivery 1", invoices_count: 1 })
      const again = await sender.send({ invoices, invoice_lines: [{ invoice_line_id: "l" }] }, options)
      assert.deepStrictEqual(again, { ...first, status: "duplicate" })
      const error = await failureOf(sender.send({ invoices }, options))
      assert.instanceOf(error, InvalidRequestError)
      assert.deepStrictEqual([error.faults[0]?.type, error.idempotencyKey], ["idempotency_key_reused", "delivery 1"])
    })
  )

  it.effect("takes a new key for each delivery without one", () =>
    over(async ({ fetch, sent }) => {
      const sender = senderOf({ fetch })
      const receipts = [await sender.send({ invoices }), await sender.send({ invoices })]
      const keys = receipts.map((each) => each.idempotency_key)
      assert.strictEqual(new Set(keys).size, 2)
      for (const { headers } of sent) assert.include(keys, headers.get("idempotency-key"))
    })
  )

  it.effect("signs for an organization that requires it", () =>
    over(async ({ fetch }) => {
      const signed = { fetch, organization: "org_signed" }
      const stored = await senderOf({ ...signed, secret }).send({ invoices: [{ invoice_id: "é\u2028😀" }] })
      assert.strictEqual(stored.status, "scheduled")
      const another = `whsec_${Buffer.from("another secret").toString("base64")}`
      const wrong = await failureOf(senderOf({ ...signed, secret: another }).send({ invoices }))
      assert.instanceOf(wrong, AuthenticationError)
      assert.match(wrong.message, /webhook-signature does not match/)
      assert.match(String(await failureOf(senderOf(signed).send({ invoices }))), /webhook-id is missing/)
    })
  )
})

test("a retry keeps the key and the body, and is signed with its own time", async () => {
  vi.spyOn(Math, "random").mockReturnValue(0)
  const { fetch, sent } = steps(broken, receipt("error"), receipt("scheduled"))
  assert.strictEqual((await senderOf({ fetch, secret, maxRetries: 2 }).send({ invoices })).status, "scheduled")
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

test("an error has the key to send the delivery again with", async () => {
  const busy = await failureOf(
    senderOf({ fetch: steps(receipt("error")).fetch }).send({ invoices }, { idempotencyKey: "k" })
  )
  assert.instanceOf(busy, ServiceUnavailableError)
  assert.deepInclude(busy, { idempotencyKey: "k", retryAfter: 0, detail: "The delivery was not stored" })
  const unreachable = await failureOf(senderOf({ fetch: steps(broken).fetch }).send({ invoices }))
  assert.instanceOf(unreachable, ConnectionError)
  assert.match(unreachable.idempotencyKey ?? "", /^[\da-f-]{36}$/)
})

test("an invalid key, organization or secret is refused before anything is sent", async () => {
  const { fetch, sent } = steps(refused(500))
  for (const idempotencyKey of ["", " a", "a ", "é", "a\n", "k".repeat(37)]) {
    const failure = await failureOf(senderOf({ fetch }).send({ invoices }, { idempotencyKey }))
    assert.match(String(failure), /idempotencyKey must have 1 to 36/)
  }
  for (const organization of ["", "o".repeat(129), "org 1", "é"])
    assert.throws(() => senderOf({ organization }), /organization must have 1 to 128/)
  for (const wrong of ["", "whsec_", "whsec_a", "no base64 §"])
    assert.throws(() => senderOf({ secret: wrong }), /secret must be whsec_/)
  assert.lengthOf(sent, 0)
})
