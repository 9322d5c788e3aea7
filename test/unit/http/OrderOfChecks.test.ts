/**
 * Of a request with several things wrong, the first is answered: key, then body schema, then organization, pagination,
 * id, then the read. Each request here violates two neighbours of that order.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import {
  CredentialStoreDown,
  EncodingUnsupported,
  IdRequired,
  OrgMismatch,
  RecordStoreDown,
  Unauthorized
} from "../../../src/api/Errors.ts"
import { OrgResolver } from "../../../src/keys/OrgResolver.ts"
import { InProcess, layerDemo, layerDemoBut, other, send, type Sent } from "../../http/inProcess.ts"
import { services, store } from "../../http/postgres.ts"

const recordStoreDown = layerDemoBut(["charges"], {
  search: () => Effect.fail(new RecordStoreDown()),
  get: () => Effect.fail(new RecordStoreDown())
})

const get = "/api/v3/charges/get"
const badKey = { authorization: "Bearer pda_live_unknown" }
const foreign = { organization: other.organization }

type Case = readonly [rule: string, sent: Sent, status: number, detail: unknown]

const unauthorized = new Unauthorized().detail
const mismatch = new OrgMismatch().detail
const contentType = [
  { loc: ["header", "content-type"], msg: "Content-Type should be application/json", type: "content_type" }
]

const cases: ReadonlyArray<Case> = [
  ["the key before the content encoding", { headers: { ...badKey, "content-encoding": "gzip" } }, 401, unauthorized],
  ["the key before the query string", { headers: badKey, path: "/api/v3/charges/search?a=b" }, 401, unauthorized],
  ["the key before the content type", { headers: { ...badKey, "content-type": "text/plain" } }, 401, unauthorized],
  ["the key before the size of the body", { headers: badKey, raw: " ".repeat(2_000_000) }, 401, unauthorized],
  ["the key before the syntax of the body", { headers: badKey, raw: "{" }, 401, unauthorized],
  ["the key before the schema", { headers: badKey, json: { limit: "x" } }, 401, unauthorized],
  ["the key before the organization", { headers: badKey, json: foreign }, 401, unauthorized],
  ["the key before the pagination", { headers: badKey, json: { limit: 0 } }, 401, unauthorized],
  ["the key before the id", { headers: badKey, path: get }, 401, unauthorized],
  [
    "the content encoding before the content type",
    { headers: { "content-encoding": "gzip", "content-type": "text/plain" } },
    415,
    new EncodingUnsupported().detail
  ],
  [
    "the query string before the syntax",
    { path: "/api/v3/charges/search?a=b", raw: "{" },
    422,
    [{ loc: ["query", "a"], msg: "Extra inputs are not permitted", type: "extra_forbidden" }]
  ],
  ["the content type before the syntax", { headers: { "content-type": "text/plain" }, raw: "{" }, 422, contentType],
  [
    "the schema before the organization",
    { json: { ...foreign, limit: "x" } },
    422,
    [{ loc: ["body", "limit"], msg: "Input should be a valid integer", type: "int_type" }]
  ],
  [
    "the schema before the pagination",
    { json: { limit: 0, status: 1 } },
    422,
    [{ loc: ["body", "status"], msg: "Input should be a valid string", type: "string_type" }]
  ],
  [
    "the schema before the id",
    { path: get, json: { id: " ", more: 1 } },
    422,
    [{ loc: ["body", "more"], msg: "Extra inputs are not permitted", type: "extra_forbidden" }]
  ],
  ["the organization before the pagination", { json: { ...foreign, limit: 0, offset: -1 } }, 400, mismatch],
  ["the organization before the id", { path: get, json: { ...foreign, id: "" } }, 400, mismatch],
  ["the organization before the record", { path: get, json: { ...foreign, id: "none" } }, 400, mismatch]
]

const check = ([, sent, status, detail]: Case) =>
  Effect.gen(function* () {
    const answer = yield* send(sent)
    assert.strictEqual(answer.status, status)
    assert.deepStrictEqual(answer.json, { detail })
  })

layer(InProcess.layer())("of two faults of a request", (it) => {
  it.effect.each(cases)("%s", check)
})

layer(InProcess.layer(Layer.orDie(services.pipe(Layer.provide(store)))), { excludeTestServices: true })(
  "of two faults of a request, where the statement that reads would look the key up",
  (it) => {
    it.effect.each(cases)("%s", check)
  }
)

layer(InProcess.layer(Layer.merge(layerDemo, OrgResolver.layerDown)))("of two faults of a request", (it) => {
  const detail = new CredentialStoreDown().detail
  it.effect.each<Case>([
    ["the key's store before the syntax", { raw: "{" }, 503, detail],
    ["the key's store before the schema", { json: { limit: "x" } }, 503, detail],
    ["the key's store before the organization", { json: foreign }, 503, detail]
  ])("%s", check)
})

layer(InProcess.layer(recordStoreDown))("of two faults of a request", (it) => {
  it.effect.each<Case>([
    ["the key before the records' store", { headers: badKey }, 401, unauthorized],
    ["the organization before the records' store", { json: foreign }, 400, mismatch],
    ["the pagination before the records' store", { json: { limit: 0 } }, 400, "limit must be between 1 and 1000"],
    ["the id before the records' store", { path: get }, 400, new IdRequired().detail],
    ["and the records' store last", { path: get, json: { id: "none" } }, 503, new RecordStoreDown().detail]
  ])("%s", check)
})
