/** The sender of deletions, over the intake and by the library of Standard Webhooks; responses beside results, and the service for tests. */
import { assert, it as test } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { Webhook } from "standardwebhooks"
import { onTestFinished, vi } from "vitest"
import * as Client from "../../../src/client/index.ts"
import { fakeService } from "../../../src/client/testing.ts"
import { layerIntake, layerMemory } from "../../support/deletions/intake.ts"
import { baseUrl, broken, clientOf, collect, failureOf, json, over, refused, type Step, steps } from "./support.ts"

const secret = `whsec_${Buffer.from("a secret of 24 bytes, or").toString("base64")}`
const invoices = [{ invoice_id: "é\u2028😀", client_id: null }]

const senderOf = (options: Partial<Client.InvoiceDeletionsOptions>) =>
  new Client.InvoiceDeletions({ baseUrl, organization: "org_open", maxRetries: 0, ...options })

const receipt = (status: string): Step => {
  const headers = { "retry-after": "0", "x-error": "intake_unavailable" }
  return json({ status, task_id: "1" }, status === "error" ? { status: 503, headers } : { status: 202 })
}

const intake = Layer.provide(layerIntake(layerMemory), Logger.layer([]))

test.effect("a delivery has its receipt from the intake, and the key of a refused one is in its error", () =>
  over(async ({ fetch }) => {
    const send = (given: Parameters<Client.InvoiceDeletions["send"]>[0]) =>
      senderOf({ fetch }).send(given, { idempotencyKey: "key 1" })
    assert.deepInclude(await send({ invoices }), { status: "scheduled", idempotency_key: "key 1", invoices_count: 1 })
    const error = await failureOf(send({ invoices: [] }))
    assert.instanceOf(error, Client.InvalidRequestError)
    assert.deepStrictEqual([error.faults[0]?.type, error.idempotencyKey], ["value_error", "key 1"])
  }).pipe(Effect.provide(intake))
)

test("a retry keeps the key and the body, which another delivery does not, and is signed with its own time", async () => {
  vi.spyOn(Math, "random").mockReturnValue(0)
  const { fetch, sent } = steps(broken, receipt("error"), receipt("scheduled"))
  const sender = senderOf({ fetch, secret, maxRetries: 2 })
  assert.strictEqual((await sender.send({ invoices })).status, "scheduled")
  assert.lengthOf(sent, 3)
  await sender.send({ invoices })
  const webhook = new Webhook(secret)
  const keys = sent.map(({ body, headers }) => {
    assert.deepStrictEqual(webhook.verify(body, Object.fromEntries(headers)), { invoices })
    assert.strictEqual(headers.get("webhook-id"), headers.get("idempotency-key"))
    return headers.get("idempotency-key")
  })
  assert.deepStrictEqual([new Set(keys.slice(0, 3)).size, new Set(keys).size], [1, 2])
  assert.match(keys[0] ?? "", /^[\x20-\x7e]{1,36}$/)
})

test("an error has the key to send the delivery again with", async () => {
  const { fetch } = steps(receipt("error"))
  const busy = await failureOf(senderOf({ fetch }).send({ invoices }, { idempotencyKey: "k" }))
  assert.instanceOf(busy, Client.ServiceUnavailableError)
  assert.deepInclude(busy, { idempotencyKey: "k", retryAfter: 0, detail: "The delivery was not stored" })
  const unreachable = await failureOf(senderOf({ fetch: steps(broken).fetch }).send({ invoices }))
  assert.instanceOf(unreachable, Client.ConnectionError)
  assert.match(unreachable.idempotencyKey ?? "", /^[\da-f-]{36}$/)
})

test("an invalid key, organization or secret is refused before anything is sent", async () => {
  const { fetch, sent } = steps(refused(500))
  for (const idempotencyKey of ["", " a", "a ", "é", "a\n", "k".repeat(37)]) {
    const failure = await failureOf(senderOf({ fetch }).send({ invoices }, { idempotencyKey }))
    assert.match(String(failure), /idempotencyKey must have 1 to 36/)
  }
  for (const organization of ["", "o".repeat(129), "org ", "é"])
    assert.throws(() => senderOf({ organization }), /organization must have 1 to 128/)
  // @ts-expect-error -- without an organization, as JavaScript may leave it out
  assert.throws(() => new Client.InvoiceDeletions({ baseUrl }), /organization must have 1 to 128/)
  for (const wrong of ["", "whsec_", "whsec_a", "no base64 §"])
    assert.throws(() => senderOf({ secret: wrong }), /secret must be whsec_/)
  assert.lengthOf(sent, 0)
})

const records = {
  charges: [
    { id: "c1", status: "open", updated_at: "2026-01-01T00:00:00.000Z", invoice_pims_id: 7 },
    { id: "c2", status: "paid", updated_at: "2026-01-02T00:00:00.000Z", servicing_clinic: "k", is_deleted: false }
  ],
  "pet-benefits": [
    {
      id: "p1",
      pet: "p",
      removed: true,
      created_at: "2026-01-01T00:00:00.000Z",
      updated_at: "2026-01-02T00:00:00.000Z"
    }
  ]
}

const idsOf = (found: ReadonlyArray<{ readonly id: string }>) => found.map(({ id }) => id)

test("a result has its response, and a failure of it is reported once", async () => {
  const { fetch, failNext } = fakeService(records)
  const client = clientOf(fetch)
  const { data, headers, requestId, status } = await client.charges.get("c1").withResponse()
  assert.deepStrictEqual([data.id, status, requestId], ["c1", 200, "fake-request"])
  assert.strictEqual(headers.get("x-changes-lag"), "0")
  failNext(500)
  assert.propertyVal(await failureOf(client.charges.get("c1").withResponse()), "status", 500)
  assert.strictEqual((await senderOf({ fetch }).send({ invoices: [] }).withResponse()).status, 202)
})

test("each try of a request is reported", async () => {
  const { fetch, failNext } = fakeService(records)
  const attempts: Array<Client.Attempt> = []
  const client = clientOf(fetch, { maxRetries: 1, onAttempt: (attempt) => attempts.push(attempt) })
  failNext(503)
  await client.charges.search()
  const path = "/api/v3/charges/search"
  const [first, second, ...more] = attempts
  assert.deepInclude(first, { attempt: 1, path, status: 503, requestId: "fake-request" })
  assert.instanceOf(first?.error, Error)
  assert.deepInclude(second, { attempt: 2, path, status: 200, error: undefined })
  assert.isEmpty(more)
})

test("the service for tests has bounds of times, in UTC without an offset, and refuses an unknown cursor", async () => {
  vi.stubEnv("TZ", "America/Denver")
  onTestFinished(() => void vi.unstubAllEnvs())
  const times = { created_at: "2026-01-01T12:00:00.000Z", updated_at: "2026-01-02T12:00:00.000Z" }
  const { fetch } = fakeService({
    "pet-benefits": [{ id: "p1", ...times }],
    "psp-charges": [{ id: "ch_1", created: 1 }]
  })
  const client = clientOf(fetch)
  const finds = async (request: Client.PetBenefitsSearchRequest) => (await client.petBenefits.search(request)).length
  assert.strictEqual(
    await finds({ created_before: "2026-01-01 12:00:00.001", updated_at_since: "2026-01-02T12:00" }),
    1
  )
  assert.strictEqual(await finds({ created_before: "2026-01-01T12:00:00" }), 0)
  assert.strictEqual(await finds({ updated_before: new Date("2026-01-02T12:00:01Z") }), 1)
  const page = client.psp.charges.search({ clinic: "c", starting_after: "ch_2" })
  assert.propertyVal(await failureOf(page), "code", "cursor_not_found")
  assert.isEmpty((await client.psp.charges.search({ clinic: "c", starting_after: "ch_1", created_gte: 2 })).data)
})

test("the service for tests searches, reads, gives changes and stores a delivery once, as the service does", async () => {
  const live = [1, 2, 3].map((created) => ({ id: `live_${created}`, created }))
  const { fetch, requests } = fakeService({ ...records, organization: [{ id: "o" }], "psp-charges": live })
  const client = clientOf(fetch)
  assert.deepStrictEqual(idsOf(await client.charges.search({ status: "open" })), ["c1"])
  assert.deepStrictEqual(idsOf(await client.charges.search({ updated_at_since: "2026-01-02T00:00:00Z" })), ["c2"])
  assert.deepStrictEqual(idsOf(await client.charges.search({ limit: 1, offset: 1 })), ["c2"])
  assert.deepStrictEqual(idsOf(await collect(client.charges.all({}, { pageSize: 2 }))), ["c1", "c2"])
  assert.deepStrictEqual(idsOf(await client.charges.search({ clinic: "k" })), ["c2"])
  assert.deepStrictEqual(idsOf(await client.charges.search({ invoice_pims_id: "7" })), ["c1"])
  assert.deepStrictEqual(await client.petBenefits.search({ pet_id: "p" }), [])
  assert.deepStrictEqual(idsOf(await client.petBenefits.search({ pet_id: "p", include_deleted: true })), ["p1"])
  const before = (time: string) =>
    client.petBenefits.search({ include_deleted: true, created_before: time, updated_before: time })
  assert.deepStrictEqual(await before("2026-01-02T00:00:00Z"), [])
  assert.deepStrictEqual(idsOf(await before("2026-01-02T00:00:00.001Z")), ["p1"])
  assert.instanceOf(await failureOf(client.charges.get("c3")), Client.NotFoundError)
  const [page] = await collect(client.charges.changes())
  assert.deepStrictEqual(idsOf(page?.body ?? []), ["c1", "c2"])
  const [first] = await collect(client.changes())
  assert.deepStrictEqual([first?.body.length, first?.is_consistent], [3, true])
  assert.deepStrictEqual((await collect(client.changes(first?.cursor)))[0]?.body, [])
  assert.lengthOf((await collect(client.changes(null, { resources: ["charges"] })))[0]?.body ?? [], 2)
  assert.strictEqual(requests.at(-1)?.path, "/api/v3/changes")
  const send = (items = invoices) => senderOf({ fetch }).send({ invoices: items }, { idempotencyKey: "k" })
  assert.deepStrictEqual([(await send()).status, (await send()).status], ["scheduled", "duplicate"])
  assert.instanceOf(await failureOf(send([])), Client.InvalidRequestError)
  assert.throws(() => fakeService({ invoiceLines: [] }), /No resource is named invoiceLines: expected organization/)
  assert.deepStrictEqual(idsOf(await collect(client.psp.charges.all({ clinic: "c" }, { pageSize: 1 }))), idsOf(live))
  const { data } = await client.psp.charges.search({ clinic: "c", created_gte: 2, created_lte: 2 })
  assert.deepStrictEqual(idsOf(data), ["live_2"])
  assert.propertyVal(await fetch("http://fake/api/v3/chargers/search", {}), "status", 404)
})
