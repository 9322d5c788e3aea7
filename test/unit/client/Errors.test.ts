/** The class of each error, its message, the privacy of keys and secrets; responses of other servers, none of which is taken for one of ours. */
import { inspect } from "node:util"
import { assert, it as test, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { FetchHttpClient } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import * as Api from "../../../src/api/Authorization.ts"
import { DataApi } from "../../../src/api/DataApi.ts"
import * as Client from "../../../src/client/index.ts"
import { InProcess, key } from "../../support/inProcess.ts"
import { long } from "../../support/tries.ts"
import {
  baseUrl,
  broken,
  clientOf,
  collect,
  failureOf,
  inProcess,
  json,
  over,
  refused,
  type Step,
  steps
} from "./support.ts"

const makeTyped = (path: string) => HttpApiClient.make(DataApi, { baseUrl: `${baseUrl}${path}` })

/** Calls the client that DataApi's types give. `records/Example` holds the records that it decodes. */
const typed = <A, E>(
  fetch: Client.Fetch,
  call: (client: Effect.Success<ReturnType<typeof makeTyped>>) => Effect.Effect<A, E>,
  path = "/api/v3"
) =>
  Effect.flatMap(makeTyped(path), call).pipe(
    Effect.provide([Api.layerKey(Redacted.make(key)), FetchHttpClient.layer]),
    Effect.provideService(FetchHttpClient.Fetch, (url, init) => fetch(new Request(url).url, init ?? {}))
  )

layer(InProcess.layer(), { excludeTestServices: true })("an error of the service", (it) => {
  it.effect("has a class by its status, and the service's words", () =>
    over(async ({ fetch }) => {
      const missing = await failureOf(clientOf(fetch).charges.get("nobody", { headers: { "x-request-id": "mine" } }))
      assert.instanceOf(missing, Client.NotFoundError)
      assert.instanceOf(missing, Client.PracticeDataError)
      assert.strictEqual(String(missing), "NotFoundError: 404 from /api/v3/charges/get: No such record (request mine)")
      assert.deepInclude(missing, {
        code: "record_not_found",
        detail: "No such record",
        status: 404,
        requestId: "mine"
      })
    })
  )

  it.effect("is no missing record if the path is unknown, for the typed client neither", () =>
    Effect.gen(function* () {
      const { fetch } = yield* inProcess
      const charges = clientOf(fetch, { baseUrl: `${baseUrl}/practice` }).charges
      assert.instanceOf(yield* Effect.promise(() => failureOf(charges.get("nobody"))), Client.UnexpectedResponseError)
      const get = typed(fetch, (client) => client.charges.get({ payload: { id: "nobody" } }), "/practice/api/v3")
      assert.strictEqual((yield* Effect.flip(get))._tag, "HttpClientError")
    })
  )

  it.effect("has a tag for the typed client, which decodes changes too", () =>
    Effect.gen(function* () {
      const { fetch } = yield* inProcess
      const headers = { authorization: "Bearer unknown", "content-type": "application/json" }
      const cases: ReadonlyArray<readonly [tag: string, request: object, changed?: RequestInit]> = [
        ["OutOfRange", { limit: 0 }],
        ["PayloadTooLarge", { status: "x".repeat(2_000_000) }],
        ["Unauthorized", {}, { headers }],
        ["RequestInvalid", {}, { body: '{"limit":"1","more":1}' }]
      ]
      for (const [tag, payload, changed] of cases) {
        const sending: Client.Fetch = (url, init) => fetch(url, { ...init, ...changed })
        const error = yield* Effect.flip(typed(sending, ({ charges }) => charges.search({ payload })))
        assert.strictEqual(error._tag, tag)
        if (error._tag === "RequestInvalid") assert.lengthOf(error.detail, 2)
      }
      const get = typed(fetch, ({ charges }) => charges.get({ payload: { id: "nobody" } }))
      assert.strictEqual((yield* Effect.flip(get))._tag, "RecordNotFound")
    })
  )

  it.effect("has all faults of a request as data, and three of them in its message", () =>
    over(async ({ fetch }) => {
      // @ts-expect-error -- filters that charges do not have
      const error = await failureOf(clientOf(fetch).charges.search({ limit: 1.5, a: 1, b: 1, c: 1, d: 1 }))
      assert.instanceOf(error, Client.InvalidRequestError)
      const unknown = ["a", "b", "c", "d"].map((name) => `body.${name} extra_forbidden`)
      const faults = error.faults.map(({ loc, type }) => `${loc.join(".")} ${type}`)
      assert.deepStrictEqual(faults, ["body.limit int_from_float", ...unknown])
      assert.match(error.message, /body.limit: Input should .*; body.b: Extra.*; and 2 more \(request/)
    })
  )
})

test.each([
  [400, Client.BadRequestError],
  [401, Client.AuthenticationError],
  [404, Client.NotFoundError],
  [410, Client.CursorExpiredError],
  [413, Client.PracticeDataError],
  [429, Client.RateLimitError],
  [500, Client.ServerError],
  [503, Client.ServiceUnavailableError]
] as const)("a %i has its class, its detail and its Retry-After", async (status, Class) => {
  const { fetch } = steps(refused(status, "Busy", { "retry-after": "3" }))
  const error = await failureOf(clientOf(fetch).charges.search())
  assert.instanceOf(error, Class)
  assert.deepInclude(error, { name: Class.name, status, detail: "Busy", retryAfter: 3, requestId: "request-1" })
})

const options = { baseUrl, apiKey: "key" }
test.each([
  [{ ...options, baseUrl: "localhost:3000" }, /baseUrl must be an address/],
  [{ ...options, baseUrl: "https://user:secret@host" }, /baseUrl must be an address/],
  [{ ...options, baseUrl: "https://host/?a=secret" }, /baseUrl must be an address/],
  [{ ...options, apiKey: "" }, /apiKey must have 1 to 1000 printable/],
  [{ ...options, apiKey: "secret\n" }, /apiKey must have 1 to/],
  [{ ...options, headers: { "x-a": "secret\n" } }, /headers has a name or a value/],
  [{ ...options, timeout: Number.NaN }, /timeout must be/],
  [{ ...options, timeout: 2_000_000_001 }, /timeout must be/],
  [{ ...options, maxRetries: -1 }, /maxRetries must be/],
  [{ ...options, maxRetries: 0.5 }, /maxRetries must be/]
])("an invalid option is refused when the client is made: %o", async (wrong, message) => {
  const error = await failureOf((async () => new Client.PracticeData(wrong))())
  assert.match(String(error), message)
  assert.notInclude(inspect(error), "secret")
})

test("an option of a search is refused before anything is sent if JSON would make it null", async () => {
  const { fetch, sent } = steps(json({ body: [] }))
  const { charges } = clientOf(fetch)
  const invalid = charges.search({ updated_at_since: new Date("no date") })
  assert.match(String(await failureOf(invalid)), /RangeError: updated_at_since is an invalid date/)
  assert.match(String(await failureOf(charges.search({ limit: Number.NaN }))), /RangeError: limit is NaN/)
  assert.lengthOf(sent, 0)
})

test.each([
  ["http://host:81/inner/path//", "http://host:81/inner/path"],
  ["http://host/api/v1/", "http://host"],
  ["http://host/inner/api/v3/", "http://host/inner"]
])("a request goes to %s", async (address, origin) => {
  const { fetch, sent } = steps(json({ id: "org" }))
  await clientOf(fetch, { baseUrl: address }).organization.get()
  assert.strictEqual(sent[0]?.url, `${origin}/api/v3/organization/get`)
})

test("a request has the key, the types, the name of the client, and the headers of the caller", async () => {
  const { fetch, sent } = steps(json({ id: "org" }))
  const client = clientOf(fetch, { apiKey: "key", headers: { "x-a": "1", "x-b": "1" } })
  await client.organization.get({ headers: { "x-b": "2", authorization: "Basic mine" } })
  const { "user-agent": agent, ...headers } = Object.fromEntries(sent[0]?.headers ?? [])
  assert.match(agent ?? "", /^practice-data\/\d+\.\d+\.\d+$/)
  assert.deepStrictEqual(headers, {
    authorization: "Bearer key",
    "content-type": "application/json",
    accept: "application/json",
    "x-a": "1",
    "x-b": "2"
  })
})

/** All that logs may have of a value. */
const shown = (value: unknown) =>
  [
    inspect(value, { depth: 10, showHidden: true, getters: true }),
    JSON.stringify(value),
    String(value),
    value instanceof Error ? value.stack : ""
  ].join("\n")

test("neither a key nor a secret is shown by a client, a sender or an error, whatever failed", async () => {
  const apiKey = "pda_live_QUITEPRIVATE"
  const secret = `whsec_${Buffer.from("QUITEPRIVATE".padEnd(24, "!")).toString("base64")}`
  const values: Array<unknown> = []
  for (const step of [refused(401), refused(503), () => new Response("<html>"), broken]) {
    const { fetch } = steps(step)
    const client = clientOf(fetch, { apiKey })
    const sender = new Client.InvoiceDeletions({ baseUrl, organization: "org", secret, fetch, maxRetries: 0 })
    values.push(client, client.charges, client.resource("charges"), sender)
    values.push(await failureOf(client.charges.search()))
    values.push(await failureOf(sender.send({ invoices: [{ invoice_id: "i" }] })))
  }
  for (const each of ["QUITEPRIVATE", secret.slice(6, 20)]) assert.notInclude(values.map(shown).join("\n"), each)
})

const html = (status: number): Step => {
  const headers = { "content-type": "text/html" }
  return () => new Response("<html>private</html>", { status, headers })
}

/** Responses, by what they are. */
const others = {
  "a 404 that is worded like ours": json({ detail: "No such record" }, { status: 404 }),
  "a login page": html(401),
  "a 422 of another server": json({ detail: [{ loc: ["body"], msg: "m", type: "missing" }] }, { status: 422 }),
  "a 422 without faults": refused(422, [1]),
  "a page of HTML": html(200),
  "other JSON": json({ items: ["private"] }),
  "a status without a body": () => new Response(null, { status: 204 })
} satisfies Record<string, Step>

const redirect: Step = () => Response.redirect("https://elsewhere.test/api", 308)

/** The failures of all ways to read and send. */
const failuresOf = (step: Step) => {
  const { fetch } = steps(step)
  const { charges, organization } = clientOf(fetch)
  const sender = new Client.InvoiceDeletions({ baseUrl, fetch, organization: "org", maxRetries: 0 })
  const all: ReadonlyArray<Promise<unknown>> = [
    charges.get("charge_1"),
    organization.get(),
    charges.search(),
    collect(charges.changes("1")),
    sender.send({ invoices: [{ invoice_id: "i" }] })
  ]
  return Promise.all(all.map(failureOf))
}

test.effect("the client for Effect knows an error by its name, whatever its text and other headers", () =>
  Effect.gen(function* () {
    for (const [status, code, tag] of [
      [401, "unauthorized", "Unauthorized"],
      [503, "credential_store_down", "CredentialStoreDown"],
      [503, "service_busy", "ServiceBusy"],
      [503, "a_later_one", "HttpClientError"]
    ] as const) {
      const headers = { "x-error": code, "www-authenticate": 'Bearer realm="a"', "retry-after": "soon" }
      const { fetch } = steps(refused(status, "The record store is busy", headers))
      const get = typed(fetch, (client) => client["deletion-tasks"].get({ payload: { task_id: "a" } }))
      assert.strictEqual((yield* Effect.flip(get))._tag, tag)
    }
  })
)

test.each(Object.entries<Step>(others))(
  "a response of another server is unexpected, with the whole URL: %s",
  async (_, step) => {
    for (const failure of await failuresOf(step)) {
      assert.instanceOf(failure, Client.UnexpectedResponseError)
      assert.isUndefined(failure.detail)
      assert.match(failure.message, /^\d{3} from http:\/\/service.test\/api\/v\d\/.*Check the base URL/)
      assert.match(failure.message, /not a response of Practice Data, but (text\/html|application\/json|one without a)/)
      assert.notInclude(failure.message, "private")
    }
  }
)

test("a response is named by its redirect, which is not followed", async () => {
  const { fetch, sent } = steps(redirect)
  await failureOf(clientOf(fetch).organization.get())
  assert.strictEqual(sent[0]?.redirect, "manual")
  for (const failure of await failuresOf(redirect))
    assert.match(String(failure), /UnexpectedResponseError: 308 .*a redirect to https:\/\/elsewhere.test\/api, which/)
  const hidden = await failureOf(clientOf(steps(() => Response.error()).fetch).organization.get())
  assert.match(String(hidden), /UnexpectedResponseError: 0 .*a redirect to another address, which is not followed/)
})

test.each([
  [html(500), Client.ServerError],
  [html(429), Client.RateLimitError]
] as const)("another server's response has the class of a status that says enough", async (step, Class) => {
  const error = await failureOf(clientOf(steps(step).fetch).charges.search())
  assert.instanceOf(error, Class)
  assert.match(error.message, /not a response of Practice Data, but text\/html$/)
  assert.isUndefined(error.detail)
})

test.each([
  ["records that are none", json({ body: [1] }), "search"],
  ["changes without removals", json({ body: [], cursor: "1", has_more: false }), "changes"],
  ["a text for a boolean", json({ body: [], removed: [], cursor: "1", has_more: "false" }), "changes"],
  ["a record without its id", json({ name: "a" }), "get"]
] as const)("a page or a record without a part of it is refused: %s", async (_, step, verb) => {
  const { changes, get, search } = clientOf(steps(step).fetch).charges
  const work = verb === "search" ? search() : verb === "get" ? get("a") : collect(changes())
  assert.instanceOf(await failureOf(work), Client.UnexpectedResponseError)
})

test("a page of the processor does not keep a walk going round", async () => {
  const same = json({ data: [{ id: "a" }], has_more: true })
  const objects = clientOf(steps(same).fetch).psp.charges.all({ clinic: "c" })
  assert.match(String(await failureOf(collect(objects))), /has more objects/)
})

test("a response is given up beyond 64 MiB", long, async () => {
  const megabyte = new Uint8Array(1024 * 1024)
  let sent = 0
  const endless: Step = () => new Response(new ReadableStream({ pull: (to) => (sent++, to.enqueue(megabyte)) }))
  const error = await failureOf(clientOf(steps(endless).fetch).charges.search())
  assert.match(String(error), /ResponseTooLargeError: The response is larger than 67108864 bytes. Request fewer/)
  assert.isBelow(sent, 70)
})
