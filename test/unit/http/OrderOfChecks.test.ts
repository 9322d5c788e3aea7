/**
 * Of a request with several things wrong, the first is answered: key, then body, organization, pagination, id, and the
 * read last, whose store is down. Each request here violates two neighbours of that order.
 */
import { layer } from "@effect/vitest"
import { Effect } from "effect"
import * as Errors from "../../../src/api/Errors.ts"
import { faults } from "../../../src/api/Faults.ts"
import { expectAnswer, InProcess, invalid, layerDemoBut, other, type Sent } from "../../support/inProcess.ts"

const get = "/api/v3/charges/get"
const query = "/api/v3/charges/search?a=b"
const badKey = { authorization: "Bearer pda_live_unknown" }
const foreign = { organization: other.organization }
const text = { "content-type": "text/plain" }

const unauthorized = { detail: new Errors.Unauthorized().detail }
const mismatch = { detail: new Errors.OrgMismatch().detail }
const encoded = { detail: new Errors.EncodingUnsupported().detail }
const extra = { detail: [{ loc: ["query", "a"], ...faults.extra }] }
const contentType = { detail: [{ loc: ["header", "content-type"], ...faults.contentType }] }
const range = { detail: "limit must be between 1 and 1000" }
const recordsDown = { detail: new Errors.RecordStoreDown().detail }

const down = () => Effect.fail(new Errors.RecordStoreDown())

layer(InProcess.layer(layerDemoBut(["charges"], { search: down, get: down })))("of two faults", (it) => {
  it.effect.each<readonly [rule: string, sent: Sent, status: number, json: unknown]>([
    ["the key before the size of the body", { headers: badKey, raw: " ".repeat(2_000_000) }, 401, unauthorized],
    ["the key before the schema", { headers: badKey, json: { limit: "x" } }, 401, unauthorized],
    ["the encoding before the content type", { headers: { "content-encoding": "gzip", ...text } }, 415, encoded],
    ["the query string before the syntax", { path: query, raw: "{" }, 422, extra],
    ["the content type before the syntax", { headers: text, raw: "{" }, 422, contentType],
    ["the schema before the organization", { json: { ...foreign, limit: "x" } }, 422, invalid(["limit", faults.int])],
    ["the organization before the pagination", { json: { ...foreign, limit: 0, offset: -1 } }, 400, mismatch],
    ["the organization before the id", { path: get, json: { ...foreign, id: "" } }, 400, mismatch],
    ["the pagination before the records' store", { json: { limit: 0 } }, 400, range],
    ["the id before the records' store", { path: get }, 400, { detail: new Errors.IdRequired().detail }],
    ["and the records' store last", { path: get, json: { id: "none" } }, 503, recordsDown]
  ])("%s", ([, sent, status, json]) => expectAnswer(sent, status, json))
})
