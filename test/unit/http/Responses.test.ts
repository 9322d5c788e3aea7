/** What is answered: pages and records as compact JSON, and 503 when their store is down. */
import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { RecordStoreDown } from "../../../src/api/Errors.ts"
import { compact, InProcess, layerDemoBut, organization, send, withDemoRecords } from "../../http/inProcess.ts"

const isPage = Schema.is(Schema.Struct({ body: Schema.Array(Schema.Struct({ id: Schema.String })) }))

layer(InProcess.layer())("the answer", (it) => {
  it.effect.each(withDemoRecords)(
    "to a search of $name is a page in compact JSON, wrapped in body",
    ({ name, record }) =>
      Effect.gen(function* () {
        const { status, headers, json, text } = yield* send({ path: `/api/v3/${name}/search` })
        assert.strictEqual(status, 200)
        assert.match(headers["content-type"] ?? "", /^application\/json\b/)
        assert.strictEqual(text, yield* compact(json))
        assert(isPage(json))
        assert.deepStrictEqual(Object.keys(json), ["body"])
        assert.isNotEmpty(json.body)
        for (const each of json.body) assert.deepStrictEqual(Object.keys(each), Object.keys(record.fields))
      })
  )

  it.effect.each(withDemoRecords)("to a get of $name is the record of the search, not wrapped", ({ name }) =>
    Effect.gen(function* () {
      const page = yield* send({ path: `/api/v3/${name}/search`, json: { limit: 1 } })
      assert(isPage(page.json))
      const answer = yield* send({ path: `/api/v3/${name}/get`, json: { id: page.json.body[0]?.id } })
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(page.text, `{"body":[${answer.text}]}`)
    })
  )

  it.effect("to a get of the organization is the key's own", () =>
    Effect.gen(function* () {
      const { json, text } = yield* send({ path: "/api/v3/organization/get" })
      assert.deepInclude(json, { id: organization })
      assert.strictEqual(text, yield* compact(json))
    })
  )

  it.effect("to a search that finds nothing is an empty page", () =>
    Effect.gen(function* () {
      const { status, text } = yield* send({ json: { id: "none" } })
      assert.deepStrictEqual([status, text], [200, `{"body":[]}`])
    })
  )

  it.effect("tells the length of its body", () =>
    Effect.gen(function* () {
      const { headers, text } = yield* send()
      assert.strictEqual(headers["content-length"], String(Buffer.byteLength(text)))
    })
  )
})

const layerDown = layerDemoBut(["charges", "organization"], {
  search: () => Effect.fail(new RecordStoreDown()),
  get: () => Effect.fail(new RecordStoreDown())
})

layer(InProcess.layer(layerDown))("a record store that is down", (it) => {
  it.effect.each([
    ["/api/v3/charges/search", {}],
    ["/api/v3/charges/get", { id: "charge_oakridge_0001" }],
    ["/api/v3/organization/get", {}]
  ] as const)("is 503 with Retry-After on %s", ([path, json]) =>
    Effect.gen(function* () {
      const answer = yield* send({ path, json })
      assert.strictEqual(answer.status, 503)
      assert.deepStrictEqual(answer.json, { detail: new RecordStoreDown().detail })
      assert.match(answer.headers["retry-after"] ?? "", /^[1-9]\d*$/)
    })
  )

  it.effect("does not keep other resources from answering", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* send({ path: "/api/v3/clinics/search" })).status, 200)
    })
  )
})
