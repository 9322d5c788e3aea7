/** The pages for browsers: where everything is, and the documentation. */
import { assert, it as test, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { OpenApi } from "effect/http-api"
import { DataApi } from "../../../src/api/DataApi.ts"
import { parse } from "../../support/openapi.ts"
import { demoKeys } from "../../../src/app/demo/DemoData.ts"
import * as PublicPages from "../../../src/http/PublicPages.ts"
import * as Server from "../../../src/app/Server.ts"
import { InProcess, layerDemo, send } from "../../support/inProcess.ts"

const openApi = OpenApi.fromApi(DataApi)

const layerPages = (served: PublicPages.Served, keys: typeof demoKeys) =>
  InProcess.layerOf(
    Layer.mergeAll(Server.dataApiRoutes, PublicPages.landing(served), Server.middleware).pipe(
      Layer.provide(Layer.merge(layerDemo, Layer.succeed(PublicPages.DemoKeys, keys)))
    )
  )

const get = (path: string, headers: Readonly<Record<string, string | undefined>> = {}) =>
  send({ path, method: "GET", headers: { authorization: undefined, "content-type": undefined, ...headers } })

layer(layerPages({ dataApi: true, intake: true }, demoKeys))("with demo data", (it) => {
  it.effect.each(["/api/v3/docs", "/api/v3/openapi.json", "/api/v3/openapi-3.0.json"])(
    "%s is kept by browsers for five minutes, and compressed for them",
    (path) =>
      Effect.gen(function* () {
        for (const [encoding, sent] of [
          ["zstd", "zstd"],
          ["gzip, deflate, br", "gzip"],
          ["identity", undefined]
        ]) {
          const { headers } = yield* get(path, { "accept-encoding": encoding })
          assert.deepStrictEqual([headers["cache-control"], headers["content-encoding"]], ["max-age=300", sent])
        }
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

  it.effect("each example finds something", () =>
    Effect.gen(function* () {
      const { paths } = parse(openApi)
      for (const [path, { post }] of Object.entries(paths)) {
        const example = post?.requestBody?.content["application/json"].examples?.demo.value
        const { text } = yield* send({ path: `/api/v3${path}`, json: example })
        assert.match(text, /^\{"((body|data)":\[\{|(task_)?id":)/, path)
      }
    })
  )
})

test.effect("without demo data no page has a demo key, and / leaves out what the process does not serve", () =>
  Effect.gen(function* () {
    const [landing, docs] = [yield* get("/"), yield* get("/api/v3/docs")]
    for (const { text } of [landing, docs]) assert.notInclude(text, "pda_demo")
    assert.include(landing.text, "/api/v3/docs")
    assert.notInclude(landing.text, "/api/v1/docs")
    assert.strictEqual(docs.status, 200)
  }).pipe(Effect.provide(layerPages({ dataApi: true, intake: false }, [])))
)
