/** Responses of other servers, proxies and paths that the service does not serve: none is taken for one of ours. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Redacted, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import * as Api from "../../../src/api/Authorization.ts"
import { DataApi } from "../../../src/api/DataApi.ts"
import { RecordNotFound } from "../../../src/api/Errors.ts"
import * as Source from "../../../src/cli/sync/Source.ts"
import { Refused } from "../../../src/cli/Usage.ts"
import * as Client from "../../../src/client/index.ts"
import { InProcess, key } from "../../support/inProcess.ts"
import { long } from "../../support/tries.ts"
import { baseUrl, clientOf, collect, failureOf, inProcess, json, refused, type Step, steps } from "./support.ts"

const detail = (text: string) => ({ detail: text })

const html =
  (status: number, text = "<html>\n  <h1>Welcome to nginx</h1></html>"): Step =>
  () =>
    new Response(text, { status, headers: { "content-type": "text/html" } })

/** Responses, by what they are. */
const others = {
  "a 404 of FastAPI": json(detail("Not Found"), { status: 404 }),
  "a 404 that is worded like ours": json(detail("No such record"), { status: 404 }),
  "a 404 of HTML": html(404),
  "a 401 of another server": json(detail("Authentication credentials were not provided."), { status: 401 }),
  "a login page": html(401),
  "a 400 of a proxy": json(detail("Bad Request"), { status: 400 }),
  "a 410 of another server": json(detail("Gone"), { status: 410 }),
  "a 422 of another server": json(
    { detail: [{ loc: ["body"], msg: "Field required", type: "missing" }] },
    { status: 422 }
  ),
  "a 422 without faults": refused(422, [1]),
  "a page of HTML": html(200),
  "other JSON": json({ items: ["private"] }),
  null: json(null),
  "an empty body": html(200, ""),
  "JSON that is cut off": html(200, '{"body": [{"id": "a"'),
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

const typed = (fetch: Client.Fetch, id: string, path = "/api/v3") =>
  Effect.gen(function* () {
    const client = yield* HttpApiClient.make(DataApi, { baseUrl: `${baseUrl}${path}` })
    return yield* Effect.flip(client.charges.get({ payload: { id } }))
  }).pipe(
    Effect.provide([Api.layerKey(Redacted.make(key)), FetchHttpClient.layer]),
    Effect.provideService(FetchHttpClient.Fetch, (url, init) => fetch(new Request(url).url, init ?? {}))
  )

describe("a response of another server", () => {
  it.effect.each(Object.entries<Step>(others))(
    "is an UnexpectedResponseError with the whole URL, and no error of the typed client: %s",
    ([, step]) =>
      Effect.gen(function* () {
        for (const failure of yield* Effect.promise(() => failuresOf(step))) {
          assert.instanceOf(failure, Client.UnexpectedResponseError)
          assert.isUndefined(failure.detail)
          assert.match(failure.message, /^\d{3} from http:\/\/service.test\/api\/v\d\/.*Check the base URL/)
          assert.match(
            failure.message,
            /not a response of Practice Data, but ("<html> <h1>Wel|an empty|"\{"body|other)/
          )
          assert.notInclude(failure.message, "private")
        }
        const failure = yield* typed(steps(step).fetch, "charge_1")
        assert.include(["HttpClientError", "SchemaError"], failure._tag)
      })
  )

  it("is named by its redirect, which is not followed", async () => {
    for (const failure of await failuresOf(redirect))
      assert.match(String(failure), /UnexpectedResponseError: 308 .*a redirect to https:\/\/elsewhere.test\/api, which/)
  })

  it.each([
    [html(502), Client.ServerError],
    [html(500), Client.ServerError],
    [html(503), Client.ServiceUnavailableError],
    [html(429), Client.RateLimitError]
  ] as const)("has the class of a status that says enough", async (step, Class) => {
    const error = await failureOf(clientOf(steps(step).fetch).charges.search())
    assert.instanceOf(error, Class)
    assert.match(error.message, /not a response of Practice Data, but "<html>/)
    assert.isUndefined(error.detail)
  })

  it.each([
    ["records that are none", json({ body: [1] }), "search"],
    ["changes without a cursor", json({ body: [], removed: [], has_more: false }), "changes"],
    ["changes without removals", json({ body: [], cursor: "1", has_more: false }), "changes"],
    ["a text for a boolean", json({ body: [], removed: [], cursor: "1", has_more: "false" }), "changes"],
    ["a record without its id", json({ name: "a" }), "get"]
  ] as const)("is a page or a record without a part of it: %s", async (_, step, verb) => {
    const { charges } = clientOf(steps(step).fetch)
    const work = {
      search: () => charges.search(),
      changes: () => collect(charges.changes()),
      get: () => charges.get("a")
    }
    assert.instanceOf(await failureOf(work[verb]()), Client.UnexpectedResponseError)
  })

  it("does not keep a walk of the processor going round", async () => {
    const same = json({ data: [{ id: "a" }], has_more: true })
    const objects = clientOf(steps(same).fetch).psp.charges.all({ clinic: "c" })
    assert.match(String(await failureOf(collect(objects))), /gives no object to go on from/)
  })

  it("is given up beyond 64 MiB", long, async () => {
    const megabyte = new Uint8Array(1024 * 1024)
    let sent = 0
    const endless: Step = () => new Response(new ReadableStream({ pull: (to) => (sent++, to.enqueue(megabyte)) }))
    const error = await failureOf(clientOf(steps(endless).fetch).charges.search())
    assert.match(String(error), /UnexpectedResponseError: The response is larger than 67108864 bytes/)
    assert.isBelow(sent, 70)
  })

  it.effect("refuses a copy", () =>
    Effect.gen(function* () {
      const client = clientOf(steps(others["a 404 of FastAPI"]).fetch)
      const source = Source.make(baseUrl, client)
      const failures = [
        yield* Effect.flip(source.organization),
        yield* Effect.flip(Stream.runDrain(source.changes(undefined, ["charges"])))
      ]
      for (const { message } of failures) assert.include(message, `404 from ${baseUrl}/api/v3/`)
      assert.instanceOf(failures[0], Refused)
    })
  )
})

layer(InProcess.layer())("the service", (test) => {
  test.effect("has no record of an id, and no endpoint of an unknown path", () =>
    Effect.gen(function* () {
      const { fetch } = yield* inProcess
      const get = (path: string) =>
        Effect.promise(() => failureOf(clientOf(fetch, { baseUrl: `${baseUrl}${path}` }).charges.get("nobody")))
      assert.instanceOf(yield* get(""), Client.NotFoundError)
      assert.instanceOf(yield* get("/practice"), Client.UnexpectedResponseError)
      assert.instanceOf(yield* typed(fetch, "nobody"), RecordNotFound)
      assert.strictEqual((yield* typed(fetch, "nobody", "/practice/api/v3"))._tag, "HttpClientError")
    })
  )
})
