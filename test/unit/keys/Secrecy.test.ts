/** No API key ever reaches a log line or a span, whatever becomes of the request that carried it. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { OrgResolver } from "../../../src/keys/OrgResolver.ts"
import { InProcess, key, layerDemo, layerDemoBut, send, type Sent, type ServiceLayer } from "../../support/inProcess.ts"
import { Recorded, textOf } from "../../support/Recorded.ts"

const dying = layerDemoBut(["charges"], {
  search: () => Effect.die(new Error("a bug")),
  get: () => Effect.die("a bug")
})

const dyingResolver = Layer.succeed(OrgResolver, OrgResolver.of({ resolve: () => Effect.die(new Error("a bug")) }))

const requests: ReadonlyArray<readonly [name: string, status: number, sent: Sent]> = [
  ["is answered", 200, {}],
  ["has an unknown key", 401, { headers: { authorization: `Bearer ${key}_unknown` } }],
  ["has the key under another scheme", 401, { headers: { authorization: `Token ${key}` } }],
  ["has the key without a scheme", 401, { headers: { authorization: key } }],
  ["has the key twice", 401, { headers: { authorization: `Bearer ${key}, Bearer ${key}` } }],
  ["has a body that is not JSON", 422, { raw: "{" }],
  ["names another organization", 400, { json: { organization: "org_other" } }],
  ["goes to an unknown path", 404, { path: "/api/v3/unknown" }],
  ["has a wrong method", 405, { method: "PUT" }]
]

const suites: ReadonlyArray<readonly [name: string, services: ServiceLayer, requests: typeof requests]> = [
  ["an API key of a request that", layerDemo, requests],
  ["an API key, when its store is down,", Layer.merge(layerDemo, OrgResolver.layerDown), [["cannot be told", 503, {}]]],
  ["an API key, when a handler dies,", dying, [["is answered with 500", 500, {}]]],
  ["an API key, when the resolver dies,", Layer.merge(layerDemo, dyingResolver), [["is answered with 500", 500, {}]]]
]

for (const [name, services, cases] of suites) {
  layer(InProcess.layer(services).pipe(Layer.provide(Recorded.recording), Layer.provideMerge(Recorded.layer)))(
    name,
    (it) => {
      it.effect.each(cases)("%s reaches no log line and no span", ([, status, sent]) =>
        Effect.gen(function* () {
          const { logs, spans } = yield* Recorded
          assert.strictEqual((yield* send(sent)).status, status)
          assert.isNotEmpty(spans)
          assert.isTrue(status !== 500 || logs.length > 0)
          assert.notInclude(logs.join(), key)
          assert.notInclude(spans.map(textOf).join(), key)
        })
      )
    }
  )
}
