/** Headers that come twice, which only a real server can tell from one with a comma. Decisions: "Invoice deletion intake". */
import { createServer, request } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { HttpServer } from "effect/http"
import * as Server from "../../../src/app/Server.ts"
import { compact } from "../../http/inProcess.ts"
import { deletions, layerMemory, path } from "../../support/deletions/intake.ts"
import { delay } from "../../support/deletions/support.ts"

const app = Server.appOf(Layer.merge(Server.intakeRoutes(delay), Server.operationsRoutes))

const served = Layer.unwrap(Effect.map(app, Server.serve)).pipe(
  Layer.provideMerge(NodeHttpServer.layer(() => createServer(), { host: "127.0.0.1", port: 0 })),
  Layer.provide(layerMemory)
)

const parse = Schema.decodeEffect(Schema.fromJsonString(Schema.Unknown))

/** Delivers with these Idempotency-Keys and organizations, each in a header of its own. */
const deliver = Effect.fnUntraced(function* (
  keys: ReadonlyArray<string>,
  organizations: ReadonlyArray<string> = ["org_a"]
) {
  const body = yield* compact(deletions)
  const { address } = yield* HttpServer.HttpServer
  const { status, text } = yield* Effect.callback<{ readonly status: number | undefined; readonly text: string }>(
    (resume) => {
      const sending = request(
        `${HttpServer.formatAddress(address)}${path}`,
        {
          method: "POST",
          headers: {
            "content-type": "application/json",
            "x-organization-id": [...organizations],
            "idempotency-key": [...keys]
          }
        },
        (response) => {
          let received = ""
          response.setEncoding("utf8")
          response.on("data", (piece: string) => (received += piece))
          response.on("end", () => resume(Effect.succeed({ status: response.statusCode, text: received })))
        }
      )
      sending.on("error", (error) => resume(Effect.die(error)))
      sending.end(body)
    }
  )
  return { status, json: yield* parse(text) }
})

const fault = (header: string) => ({
  loc: ["header", header],
  msg: "Input should be a valid string",
  type: "string_type"
})

layer(served, { excludeTestServices: true })("a header that comes twice", (it) => {
  it.effect.each([[["other", "another"]], [["same", "same"]], [["first", "", "last"]]])(
    "is 422 when it is the Idempotency-Key, the same value or not: %j",
    ([keys = []]) =>
      Effect.gen(function* () {
        const { status, json } = yield* deliver(keys)
        assert.strictEqual(status, 422)
        assert.deepStrictEqual(json, { detail: [fault("idempotency-key")] })
      })
  )

  it.effect.each([[["org_a", "org_b"]], [["org_a", "org_a"]], [["org_a", ""]]])(
    "is 422 when it is the X-Organization-Id, the same value or not: %j",
    ([organizations = []]) =>
      Effect.gen(function* () {
        const { status, json } = yield* deliver(["key"], organizations)
        assert.strictEqual(status, 422)
        assert.deepStrictEqual(json, { detail: [fault("x-organization-id")] })
      })
  )

  it.effect("is 422 with all that is wrong with the headers", () =>
    Effect.gen(function* () {
      const { json } = yield* deliver(["a", "b"], ["org_a", "org_b"])
      assert.deepStrictEqual(json, { detail: [fault("idempotency-key"), fault("x-organization-id")] })
    })
  )

  it.effect("is not one that has a comma", () =>
    Effect.gen(function* () {
      const { status, json } = yield* deliver(["other, another"], ["org_a, org_b"])
      assert.strictEqual(status, 202)
      assert.deepInclude(json, { idempotency_key: "other, another" })
    })
  )
})
