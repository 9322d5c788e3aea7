/** An Idempotency-Key in two headers, which only a real server can tell from one. Decisions: "Invoice deletion intake". */
import { createServer, request } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { HttpServer } from "effect/http"
import * as Server from "../../src/Server.ts"
import { compact } from "../Http/inProcess.ts"
import { deletions, layerMemory, path } from "./intake.ts"
import { delay } from "./support.ts"

const served = Server.serve(Layer.merge(Server.intakeRoutes(delay), Server.operationsRoutes)).pipe(
  Layer.provideMerge(NodeHttpServer.layer(() => createServer(), { host: "127.0.0.1", port: 0 })),
  Layer.provide(layerMemory)
)

const parse = Schema.decodeEffect(Schema.fromJsonString(Schema.Unknown))

/** Delivers with these Idempotency-Keys, each in a header of its own. */
const deliver = Effect.fnUntraced(function* (keys: ReadonlyArray<string>) {
  const body = yield* compact(deletions)
  const { address } = yield* HttpServer.HttpServer
  const { status, text } = yield* Effect.callback<{ readonly status: number | undefined; readonly text: string }>(
    (resume) => {
      const sending = request(
        `${HttpServer.formatAddress(address)}${path}`,
        {
          method: "POST",
          headers: { "content-type": "application/json", "x-organization-id": "org_a", "idempotency-key": [...keys] }
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

layer(served, { excludeTestServices: true })("an Idempotency-Key", (it) => {
  it.effect.each([[["other", "another"]], [["same", "same"]], [["first", "", "last"]]])(
    "that is repeated is 422, the same key or not: %j",
    ([keys = []]) =>
      Effect.gen(function* () {
        const { status, json } = yield* deliver(keys)
        assert.strictEqual(status, 422)
        assert.deepStrictEqual(json, {
          detail: [{ loc: ["header", "idempotency-key"], msg: "Input should be a valid string", type: "string_type" }]
        })
      })
  )

  it.effect("that has a comma is one key", () =>
    Effect.gen(function* () {
      const { status, json } = yield* deliver(["other, another"])
      assert.strictEqual(status, 202)
      assert.deepInclude(json, { idempotency_key: "other, another" })
    })
  )
})
