/** The response beside a result, the tries of a request, and the service for tests. */
import { assert, it } from "@effect/vitest"
import { type Attempt, InvoiceDeletions, NotFoundError } from "../../../src/client/index.ts"
import { fakeService } from "../../../src/client/testing.ts"
import { clientOf, collect, failureOf } from "./support.ts"

const records = {
  charges: [
    { id: "c1", status: "open", updated_at: "2026-01-01T00:00:00.000Z" },
    { id: "c2", status: "paid", updated_at: "2026-01-02T00:00:00.000Z" }
  ],
  pets: [{ id: "p1" }]
}

const idsOf = (found: ReadonlyArray<{ readonly id: string }>) => found.map(({ id }) => id)

it("a result has its response, and a failure of it is reported once", async () => {
  const { fetch, failNext } = fakeService(records)
  const client = clientOf(fetch)
  const { data, headers, requestId, status } = await client.charges.get("c1").withResponse()
  assert.deepStrictEqual([data.id, status, requestId], ["c1", 200, "fake-request"])
  assert.strictEqual(headers.get("x-changes-lag"), "0")
  failNext(500)
  assert.propertyVal(await failureOf(client.charges.get("c1").withResponse()), "status", 500)
  const sender = new InvoiceDeletions({ baseUrl: "http://fake", organization: "o", fetch })
  assert.strictEqual((await sender.send({ invoices: [] }).withResponse()).status, 202)
})

it("each try of a request is reported", async () => {
  const { fetch, failNext } = fakeService(records)
  const attempts: Array<Attempt> = []
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

it("the service for tests searches, reads and gives changes as the service does", async () => {
  const { fetch, requests } = fakeService(records)
  const client = clientOf(fetch)
  assert.deepStrictEqual(idsOf(await client.charges.search({ status: "open" })), ["c1"])
  assert.deepStrictEqual(idsOf(await client.charges.search({ updated_at_since: "2026-01-02T00:00:00Z" })), ["c2"])
  assert.deepStrictEqual(idsOf(await client.charges.search({ limit: 1, offset: 1 })), ["c2"])
  assert.deepStrictEqual(idsOf(await collect(client.charges.all({}, { pageSize: 2 }))), ["c1", "c2"])
  assert.instanceOf(await failureOf(client.charges.get("c3")), NotFoundError)
  const [page] = await collect(client.charges.changes())
  assert.deepStrictEqual(idsOf(page?.body ?? []), ["c1", "c2"])
  const [first] = await collect(client.changes())
  assert.deepStrictEqual([first?.body.length, first?.is_consistent], [3, true])
  assert.deepStrictEqual((await collect(client.changes(first?.cursor)))[0]?.body, [])
  assert.strictEqual(requests.at(-1)?.path, "/api/v3/changes")
})

it("the service for tests stores a delivery once", async () => {
  const { fetch } = fakeService()
  const sender = new InvoiceDeletions({ baseUrl: "http://fake", organization: "o", fetch })
  const send = () => sender.send({ invoices: [{ invoice_id: "i" }] }, { idempotencyKey: "k" })
  assert.deepStrictEqual([(await send()).status, (await send()).status], ["scheduled", "duplicate"])
})
