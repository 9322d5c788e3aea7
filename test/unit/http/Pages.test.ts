/** The pages for browsers: where everything is, and the documentation. */
import { assert, it as test, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { OpenApi } from "effect/http-api"
import { DataApi } from "../../../src/api/DataApi.ts"
import { Document } from "../../support/openapi.ts"
import { demoKeys } from "../../../src/demo/DemoData.ts"
import { cacheable } from "../../../src/http/Html.ts"
import * as PublicPages from "../../../src/http/PublicPages.ts"
import * as Server from "../../../src/app/Server.ts"
import { compact, InProcess, layerDemo, send } from "../../support/inProcess.ts"

const openApi = OpenApi.fromApi(DataApi)

const layerPages = (served: PublicPages.Served, keys: typeof demoKeys) =>
  InProcess.layerOf(
    Layer.mergeAll(Server.dataApiRoutes, PublicPages.landing(served), Server.middleware).pipe(
      Layer.provide(Layer.merge(layerDemo, Layer.succeed(PublicPages.DemoKeys, keys)))
    )
  )

const get = (path: string, headers: Readonly<Record<string, string | undefined>> = {}) =>
  send({ path, method: "GET", headers: { authorization: undefined, "content-type": undefined, ...headers } })

test.effect("a page is compressed once for each encoding", () =>
  Effect.gen(function* () {
    const page = cacheable(HttpServerResponse.text("text ".repeat(1000)))
    const compressed = (encoding: string) =>
      Effect.provideService(
        page,
        HttpServerRequest.HttpServerRequest,
        HttpServerRequest.fromWeb(new Request("http://localhost/", { headers: { "accept-encoding": encoding } }))
      )
    for (const encoding of ["gzip", "br", "zstd"]) {
      const first = yield* compressed(encoding)
      assert.strictEqual(first.headers["content-encoding"], encoding)
      assert.strictEqual((yield* compressed(encoding)).body, first.body)
    }
  })
)

layer(layerPages({ dataApi: true, intake: true }, demoKeys))("with demo data", (it) => {
  it.effect("/ is a small page with the demo keys and a line to paste", () =>
    Effect.gen(function* () {
      const { headers, status, text } = yield* get("/")
      assert.strictEqual(status, 200)
      assert.match(headers["content-type"] ?? "", /^text\/html/)
      assert.isBelow(Buffer.byteLength(text), 5000)
      for (const { key, organization } of demoKeys) assert.include(text, `<code>${key}</code> ${organization}`)
      assert.include(text, "curl -s http://127.0.0.1:3000/api/v3/charges/search")
      for (const path of ["/api/v3/docs", "/api/v3/openapi.json", "/api/v1/docs", "/api/v1/openapi.json"])
        assert.include(text, `href="${path}"`)
    })
  )

  it.effect.each(["/api/v3/docs", "/api/v3/openapi.json"])("%s is sent once to a browser", (path) =>
    Effect.gen(function* () {
      const { headers } = yield* get(path)
      const again = yield* get(path, { "if-none-match": headers["etag"] })
      assert.deepStrictEqual([again.status, again.text, again.headers["etag"]], [304, "", headers["etag"]])
      assert.strictEqual((yield* get(path, { "if-none-match": `W/"another"` })).status, 200)
    })
  )

  it.effect("the documentation has the first demo key, and runs no script but its own", () =>
    Effect.gen(function* () {
      const { headers, text } = yield* get("/api/v3/docs")
      assert.include(text, `"token":"${demoKeys[0]?.key}"`)
      const policy = headers["content-security-policy"] ?? ""
      assert.match(policy, /default-src 'none'; script-src( 'sha256-[^']+'){2};/)
      assert.notMatch(policy, /https?:|\*|script-src[^;]*unsafe/)
    })
  )

  it.effect("the documentation has the OpenAPI document, with a quick start before its introduction", () =>
    Effect.gen(function* () {
      const { json } = yield* get("/api/v3/openapi.json")
      assert.strictEqual(yield* compact(json), yield* compact(openApi))
      const { text } = yield* get("/api/v3/docs")
      for (const path of Object.keys(openApi.paths)) assert.include(text, `"${path}":{`)
      assert.include(text, "## Quick start")
      assert.notInclude(text, "{key}")
    })
  )

  it.effect("each example finds something", () =>
    Effect.gen(function* () {
      const { paths } = yield* Schema.decodeUnknownEffect(Document)(openApi)
      for (const [path, { post }] of Object.entries(paths)) {
        const example = post?.requestBody?.content["application/json"].examples?.demo.value
        const { text } = yield* send({ path: `/api/v3${path}`, json: example })
        assert.match(text, /^\{"((body|data)":\[\{|(task_)?id":)/, path)
      }
    })
  )
})

layer(layerPages({ dataApi: true, intake: false }, []))("without demo data", (it) => {
  it.effect("no page has a demo key, and / leaves out what the process does not serve", () =>
    Effect.gen(function* () {
      const [landing, docs] = [yield* get("/"), yield* get("/api/v3/docs")]
      for (const { text } of [landing, docs]) assert.notInclude(text, "pda_demo")
      assert.include(landing.text, "/api/v3/docs")
      assert.notInclude(landing.text, "/api/v1/docs")
      assert.strictEqual(docs.status, 200)
    })
  )
})
