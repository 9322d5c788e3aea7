/** Servers other than this one, and paths that it does not serve, over HTTP: nothing that they say is taken for ours. */
import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted, Stream } from "effect"
import { FetchHttpClient, HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import * as Api from "../../../src/api/Client.ts"
import { DataApi } from "../../../src/api/DataApi.ts"
import { RecordNotFound } from "../../../src/api/Errors.ts"
import { InvoiceDeletions, NotFoundError, PracticeData, UnexpectedResponseError } from "../../../src/client/index.ts"
import * as Server from "../../../src/app/Server.ts"
import { Source, SourceRefused } from "../../../src/cli/sync/Source.ts"
import { runWith } from "../../support/cli.ts"
import { key, layerDemo } from "../../http/inProcess.ts"
import { collect, failureOf } from "./support.ts"

interface Answer {
  readonly status: number
  readonly type?: string
  readonly body: string
}

const detail = (text: string) => JSON.stringify({ detail: text })

/** The responses of other servers to any request, by the first part of the path. */
const answers: Readonly<Record<string, Answer>> = {
  fastapi: { status: 404, body: detail("Not Found") },
  alike: { status: 404, body: detail("No such record") },
  page: { status: 404, type: "text/html", body: "<h1>404</h1>" },
  token: { status: 401, body: detail("Authentication credentials were not provided.") },
  login: { status: 401, type: "text/html", body: "<h1>Log in</h1>" },
  forbidden: { status: 403, body: detail("Forbidden") },
  bad: { status: 400, body: detail("Bad Request") },
  gone: { status: 410, body: detail("Gone") },
  invalid: { status: 422, body: '{"detail":[{"loc":["body"],"msg":"Field required","type":"missing"}]}' },
  welcome: { status: 200, type: "text/html", body: "<h1>Welcome</h1>" },
  json: { status: 200, body: '{"status":"ok"}' }
}

/** With the headers that many servers have. */
const answer = Effect.map(HttpServerRequest.HttpServerRequest, ({ url }) => {
  const { body, status, type = "application/json" } = answers[url.split("/")[1] ?? ""] ?? { status: 500, body: "" }
  const headers = { "x-request-id": "1", "x-content-type-options": "nosniff", "cache-control": "no-store" }
  return HttpServerResponse.text(body, { status, headers, contentType: type })
})

const listening = NodeHttpServer.layer(() => createServer(), { host: "127.0.0.1", port: 0 })

const others = HttpServer.serve(answer).pipe(Layer.provideMerge(listening))

const service = Layer.unwrap(Effect.map(Server.appOf(Server.dataApiRoutes), Server.serve)).pipe(
  Layer.provideMerge(listening),
  Layer.provide(layerDemo)
)

const address = Effect.map(HttpServer.HttpServer, (server) => HttpServer.formatAddress(server.address))

const typed = (baseUrl: string, id: string) =>
  Effect.gen(function* () {
    const client = yield* HttpApiClient.make(DataApi, { baseUrl: `${baseUrl}/api/v3` })
    return yield* Effect.flip(client.charges.get({ payload: { id } }))
  }).pipe(Effect.provide([Api.layerKey(Redacted.make(key)), FetchHttpClient.layer]))

const client = (baseUrl: string) => new PracticeData({ baseUrl, apiKey: key, maxRetries: 0 })

/** The failures of all ways to read and send. */
const failures = (baseUrl: string) =>
  Effect.promise(() => {
    const { charges, organization } = client(baseUrl)
    const sender = new InvoiceDeletions({ baseUrl, organization: "org", maxRetries: 0 })
    return Promise.all(
      [
        charges.get("charge_1"),
        organization.get(),
        charges.search(),
        collect(charges.changes("1")),
        sender.send({ invoices: [{ invoice_id: "i" }] })
      ].map(failureOf)
    )
  })

layer(others)("what is not an answer of the service", (it) => {
  it.effect.each(Object.entries(answers))(
    "is an UnexpectedResponseError that names the whole URL: %s",
    ([path, { status }]) =>
      Effect.gen(function* () {
        const baseUrl = `${yield* address}/${path}`
        for (const failure of yield* failures(baseUrl)) {
          assert.instanceOf(failure, UnexpectedResponseError)
          assert.include(failure.message, `${status} from ${baseUrl}/api/v`)
          assert.match(failure.message, /not a response of Practice Data.*Check the base URL/)
          assert.strictEqual(failure.status, status)
          assert.isUndefined(failure.detail)
        }
      })
  )

  it.effect.each(Object.keys(answers))("is no declared error of the typed client: %s", (path) =>
    Effect.gen(function* () {
      const failure = yield* typed(`${yield* address}/${path}`, "charge_1")
      assert.include(["HttpClientError", "SchemaError"], failure._tag)
    })
  )

  it.effect("`get` and `sync` name its URL", () =>
    Effect.gen(function* () {
      const url = `${yield* address}/fastapi`
      const environment = { PRACTICE_DATA_URL: url, PRACTICE_DATA_API_KEY: key }
      const got = yield* runWith(environment, ["get", "charges", "charge_1"])
      assert.strictEqual(got.code, 1)
      assert.include(got.stderr, `404 from ${url}/api/v3/charges/get: not a response of Practice Data`)
      const source = yield* Effect.provide(Source, Source.layer({ url, client: client(url) }))
      for (const failure of [
        yield* Effect.flip(source.organization),
        yield* Effect.flip(Stream.runDrain(source.changes("charges", undefined)))
      ]) {
        assert.include(failure.message, `404 from ${url}/api/v3/`)
      }
      assert.instanceOf(yield* Effect.flip(source.organization), SourceRefused)
    })
  )
})

layer(service)("the service", (it) => {
  it.effect("says that a record is not there, and is not taken to say so of a path that it does not serve", () =>
    Effect.gen(function* () {
      const url = yield* address
      const get = (baseUrl: string) => Effect.promise(() => failureOf(client(baseUrl).charges.get("nobody")))
      assert.instanceOf(yield* get(url), NotFoundError)
      assert.instanceOf(yield* typed(url, "nobody"), RecordNotFound)
      assert.instanceOf(yield* get(`${url}/practice`), UnexpectedResponseError)
      assert.strictEqual((yield* typed(`${url}/practice`, "nobody"))._tag, "HttpClientError")
    })
  )
})
