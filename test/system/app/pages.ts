/** What a page and a record are: fields, types, order, paging. */
import { assert } from "@effect/vitest"
import { Array, Effect } from "effect"
import { endpoints, resourceOf, searchable } from "../../support/contract/Contract.ts"
import type { Resource } from "../../support/contract/Resource.ts"
import { json, parse } from "../../support/Client.ts"
import { all, everything, idsOf, isOf, orderOf, type Record, recordsOf, search } from "../../support/Records.ts"
import { Service, type Tests } from "../../support/Service.ts"

const isRecordOf = (resource: Resource, record: Record) => {
  assert.deepStrictEqual(Object.keys(record), Object.keys(resource.fields))
  for (const [field, type] of Object.entries(resource.fields)) {
    assert.isTrue(isOf(type, record[field]), `${resource.name} ${field} ${String(record[field])} is no ${type}`)
  }
}

/** Whether a value is an object of the JSON kind. */
const isRecord = (value: unknown): value is Record => typeof value === "object" && value !== null

export const pages = (it: Tests) => {
  it.effect.each(searchable)("/$name/search answers every field in the contract's order and of its type", (resource) =>
    Effect.gen(function* () {
      const client = yield* Service
      const records = yield* all(client, resource)
      assert.isAbove(records.length, 0)
      for (const record of records) isRecordOf(resource, record)
    })
  )

  it.effect.each(searchable)("/$name/search answers in ascending order, ids break ties", (resource) =>
    Effect.gen(function* () {
      const client = yield* Service
      const records = yield* all(client, resource)
      assert.deepStrictEqual(idsOf(records), idsOf(Array.sort(records, orderOf(resource))))
      assert.strictEqual(new Set(idsOf(records)).size, records.length)
    })
  )

  it.effect.each(searchable)(
    "/$name/search answers 100 records by default, and the next ones at offset 100",
    (resource) =>
      Effect.gen(function* () {
        const client = yield* Service
        const { limit, ...request } = everything(resource)
        const records = yield* search(client, resource, { ...request, limit })
        assert.deepStrictEqual(yield* search(client, resource, request), records.slice(0, 100))
        assert.deepStrictEqual(yield* search(client, resource, { ...request, offset: 100 }), records.slice(100, 200))
      })
  )

  it.effect("at least three kinds of record need a second page", () =>
    Effect.gen(function* () {
      const client = yield* Service
      const counts = yield* Effect.forEach(searchable, (resource) =>
        Effect.map(all(client, resource), (records) => records.length)
      )
      assert.isAtLeast(counts.filter((count) => count > 100).length, 3)
    })
  )

  it.effect.each(searchable)("/$name/search by limit and offset walks through every record once", (resource) =>
    Effect.gen(function* () {
      const client = yield* Service
      const records = yield* all(client, resource)
      const limit = 29
      const offsets = Array.makeBy(Math.ceil(records.length / limit) + 1, (page) => page * limit)
      const walked = yield* Effect.forEach(offsets, (offset) =>
        search(client, resource, { ...everything(resource), limit, offset })
      )
      assert.deepStrictEqual(walked.flat(), records)
      assert.deepStrictEqual(walked.at(-1), [])
    })
  )

  it.effect.each(searchable)("/$name/get answers the bytes of the record in /$name/search, not wrapped", (resource) =>
    Effect.gen(function* () {
      const client = yield* Service
      const records = yield* all(client, resource)
      const some = records.filter((_, index) => index % 25 === 0 || index === records.length - 1)
      for (const { id } of some) {
        const page = yield* client.ask(`/${resource.name}/search`, { ...everything(resource), id })
        const record = yield* client.ask(`/${resource.name}/get`, { id })
        assert.strictEqual(record.status, 200)
        assert.strictEqual(page.text, `{"body":[${record.text}]}`)
      }
    })
  )

  it.effect("/organization/get answers the key's own organization, all fields in order and of their types", () =>
    Effect.gen(function* () {
      const client = yield* Service
      for (const slug of ["oakridge", "harbor"] as const) {
        const answer = yield* client.ask("/organization/get", {}, slug)
        const record = yield* parse(answer.text)
        assert.isTrue(isRecord(record))
        if (isRecord(record)) {
          isRecordOf(resourceOf("organization"), record)
          assert.strictEqual(record["id"], `org_${slug}`)
        }
      }
    })
  )

  // There is no task to get yet.
  const answering = endpoints.filter(({ kind }) => kind !== "get task")

  it.effect.each(answering)("$path answers compact JSON, with its type, its length and a request id", (endpoint) =>
    Effect.gen(function* () {
      const client = yield* Service
      const [first] = "id" in endpoint.least && endpoint.kind === "get" ? yield* all(client, endpoint.resource) : []
      const answer = yield* client.ask(endpoint.path, first ? { id: first["id"] } : endpoint.least)
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(answer.headers["content-type"], "application/json")
      assert.strictEqual(Number(answer.headers["content-length"]), Buffer.byteLength(answer.text))
      assert.match(String(answer.headers["x-request-id"]), /^[\x21-\x7e]{1,128}$/)
      assert.strictEqual(answer.text, json(yield* parse(answer.text)))
    })
  )

  it.effect("a charge's invoice_pims_id is a number, a consumption log's a string", () =>
    Effect.gen(function* () {
      const client = yield* Service
      const typesIn = (path: string) =>
        Effect.gen(function* () {
          const records = yield* recordsOf((yield* client.ask(path)).text)
          return [...new Set(records.map((record) => typeof record["invoice_pims_id"]))]
        })
      assert.deepStrictEqual(yield* typesIn("/charges/search"), ["number"])
      assert.deepStrictEqual(yield* typesIn("/consumption-logs/search"), ["string"])
    })
  )

  it.effect("payment_modifications is null and never an empty list where an intent has none", () =>
    Effect.gen(function* () {
      const client = yield* Service
      const records = yield* recordsOf((yield* client.ask("/payment-intents/search", { limit: 1000 })).text)
      const modifications = records.map((record) => record["payment_modifications"])
      assert.include(modifications, null)
      assert.isTrue(modifications.some(Array.isArray))
      for (const list of modifications) assert.notDeepEqual(list, [])
    })
  )
}
