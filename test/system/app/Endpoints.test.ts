/**
 * Every endpoint of the started program: whatever is sent, it answers as documented and with nothing of another
 * organization, and answers the next request. The rules of requests are tested in this process, in `unit/api` and
 * `unit/http`; what each filter finds in each organization, over Postgres, in `integration/records`.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Arbitrary, Array, Effect } from "effect"
import { integer, oneOf } from "../../support/arbitraries.ts"
import { type Headers, headersOf, json, parse } from "../../support/Client.ts"
import { type Endpoint, endpoints } from "../../support/contract/Contract.ts"
import { anyJson, anyText, bytes, fieldsOf, nearlyValid, objectOf } from "../../support/requests.ts"
import { options, Service } from "../../support/Service.ts"

const headerText = Arbitrary.map(anyText, (value) => value.replace(/[^\x20-\x7e]/g, "~").trim())
const oddHeaders = oneOf<Headers>(
  Arbitrary.map(headerText, (value) => ({ accept: value, "accept-encoding": value, "x-request-id": value })),
  Arbitrary.Constant({ traceparent: "00-zz-zz-zz", b3: "1", range: "bytes=0-1", "if-none-match": "*" }),
  Arbitrary.Constant({ "x-http-method-override": "DELETE", "x-organization-id": "org_harbor" })
)

const requestTo = (endpoint: Endpoint) => {
  const valid = Arbitrary.map(fieldsOf(endpoint), objectOf)
  const body = oneOf<string | Uint8Array>(valid, nearlyValid(endpoint), anyJson, bytes)
  const odd = oneOf(Arbitrary.Constant({}), Arbitrary.Constant({}), oddHeaders)
  return Arbitrary.map(Arbitrary.all([body, integer(0, 9), odd]), ([text, chance, more]) => ({
    endpoint,
    body: text,
    headers: { ...headersOf("oakridge"), ...more },
    chunked: chance === 0
  }))
}

const detail = /^\{"detail":"[^"]+"\}$/

/** The bodies of the statuses that may be. */
const documented: Readonly<Record<number, RegExp>> = {
  200: /^\{"(body|data|id)":/,
  400: detail,
  404: detail,
  422: /^\{"detail":\[\{"loc":\["(body|query|header)"/
}

layer(Service.layerPostgres, options)("The program", (it) => {
  it.effect.prop(
    "answers any request to any endpoint with a documented status and body, and then the next one",
    [oneOf(...Array.map(endpoints, requestTo))],
    ([{ body, chunked, endpoint, headers }]) =>
      Effect.gen(function* () {
        const client = yield* Service
        const answer = yield* client.call({ path: `/api/v3${endpoint.path}`, headers, body, chunked })
        const sent = `${endpoint.path} ${json(body.slice(0, 2000))} ${json(headers)}: ${answer.status} ${answer.text}`
        assert.match(answer.text, documented[answer.status] ?? /^no such status$/, sent)
        yield* parse(answer.text)
        assert.notInclude(answer.text, "harbor_")
        assert.strictEqual((yield* client.ask("/organization/get")).status, 200)
      }),
    { arbitrary: { runs: 300, concurrency: 8, size: 20 } }
  )
})
