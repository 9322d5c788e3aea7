/**
 * Of a request with several things wrong, the first is answered: key, then body, organization, pagination, id, and the
 * read last. Each request here violates two neighbours of that order.
 */
import { layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Errors from "../../../src/api/Errors.ts"
import { faults } from "../../../src/api/Faults.ts"
import { OrgResolver } from "../../../src/keys/OrgResolver.ts"
import { expectAnswer, InProcess, invalid, layerDemo, layerDemoBut, other, type Sent } from "../../support/inProcess.ts"

const get = "/api/v3/charges/get"
const query = "/api/v3/charges/search?a=b"
const badKey = { authorization: "Bearer pda_live_unknown" }
const foreign = { organization: other.organization }
const text = { "content-type": "text/plain" }

type Case = readonly [rule: string, sent: Sent, status: number, json: unknown]

const unauthorized = { detail: new Errors.Unauthorized().detail }
const mismatch = { detail: new Errors.OrgMismatch().detail }
const encoded = { detail: new Errors.EncodingUnsupported().detail }
const extra = { detail: [{ loc: ["query", "a"], ...faults.extra }] }
const contentType = { detail: [{ loc: ["header", "content-type"], ...faults.contentType }] }

const cases: ReadonlyArray<Case> = [
  ["the key before the size of the body", { headers: badKey, raw: " ".repeat(2_000_000) }, 401, unauthorized],
  ["the key before the schema", { headers: badKey, json: { limit: "x" } }, 401, unauthorized],
  ["the encoding before the content type", { headers: { "content-encoding": "gzip", ...text } }, 415, encoded],
  ["the query string before the syntax", { path: query, raw: "{" }, 422, extra],
  ["the content type before the syntax", { headers: text, raw: "{" }, 422, contentType],
  ["the schema before the organization", { json: { ...foreign, limit: "x" } }, 422, invalid(["limit", faults.int])],
  ["the organization before the pagination", { json: { ...foreign, limit: 0, offset: -1 } }, 400, mismatch],
  ["the organization before the id", { path: get, json: { ...foreign, id: "" } }, 400, mismatch]
]

const check = ([, sent, status, json]: Case) => expectAnswer(sent, status, json)

layer(InProcess.layer())("of two faults", (it) => {
  it.effect.each(cases)("%s", check)
})

const keysDown = { detail: new Errors.CredentialStoreDown().detail }
layer(InProcess.layer(Layer.merge(layerDemo, OrgResolver.layerDown)))("of two faults", (it) => {
  it.effect("the key's store before the syntax", () => expectAnswer({ raw: "{" }, 503, keysDown))
})

const range = { detail: "limit must be between 1 and 1000" }
const down = () => Effect.fail(new Errors.RecordStoreDown())
const recordsDown = { detail: new Errors.RecordStoreDown().detail }
layer(InProcess.layer(layerDemoBut(["charges"], { search: down, get: down })))("of two faults", (it) => {
  it.effect.each<Case>([
    ["the pagination before the records' store", { json: { limit: 0 } }, 400, range],
    ["the id before the records' store", { path: get }, 400, { detail: new Errors.IdRequired().detail }],
    ["and the records' store last", { path: get, json: { id: "none" } }, 503, recordsDown]
  ])("%s", check)
})
