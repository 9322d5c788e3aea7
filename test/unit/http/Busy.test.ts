/** The answers while other large bodies take up all memory for them: 503 with the documented body. */
import { assert, layer } from "@effect/vitest"
import { Clock, DateTime, Duration, Effect, Layer } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { DataApi } from "../../../src/api/DataApi.ts"
import { ServiceBusy } from "../../../src/api/Errors.ts"
import * as JsonBodyServer from "../../../src/http/JsonBodyServer.ts"
import { taskIdOf } from "../../../src/deletions/Delivery.ts"
import { busy, tasks } from "../../../src/deletions/Handlers.ts"
import * as AuthorizationServer from "../../../src/keys/AuthorizationServer.ts"
import * as PspHandlers from "../../../src/psp/Handlers.ts"
import * as RecordHandlers from "../../../src/records/Handlers.ts"
import { expectAnswer, InProcess, layerDemo } from "../../support/inProcess.ts"

const handlers = Layer.mergeAll(RecordHandlers.layer, PspHandlers.layer, tasks).pipe(
  Layer.provideMerge([
    AuthorizationServer.layer,
    JsonBodyServer.layer({ maxBytes: 1_000_000, budget: new JsonBodyServer.Budget(100_000) })
  ]),
  Layer.provide(layerDemo)
)

const server = InProcess.layerOf(Layer.provide(HttpApiBuilder.layer(DataApi), handlers))

const answerTo = (headers: Readonly<Record<string, string>>) =>
  Effect.provideService(
    busy(Duration.minutes(1)),
    HttpServerRequest.HttpServerRequest,
    HttpServerRequest.fromWeb(new Request("http://localhost/", { method: "POST", headers }))
  )

const large = (size: number) => {
  const raw = `{"status":"${"s".repeat(size)}"}`
  return { path: "/charges/search", raw, headers: { "content-length": String(raw.length) } }
}

layer(server)("a large body, while others take up all memory for them,", (it) => {
  it.effect("is 503 with Retry-After on the data API, and small ones are answered", () =>
    Effect.gen(function* () {
      for (let round = 0; round < 3; round++) {
        const { headers } = yield* expectAnswer(large(300_000), 503, { detail: new ServiceBusy().detail })
        assert.strictEqual(headers["retry-after"], "1")
        yield* expectAnswer(large(10), 200, { body: [] })
        yield* expectAnswer(large(100_000), 200, { body: [] })
      }
    })
  )

  it.effect("is 503 with Retry-After and the receipt of a delivery that was not stored on the intake", () =>
    Effect.gen(function* () {
      const response = HttpServerResponse.toWeb(yield* answerTo({ "idempotency-key": "k", "x-organization-id": "o" }))
      const at = DateTime.makeUnsafe((yield* Clock.currentTimeMillis) + 60_000)
      assert.deepStrictEqual([response.status, response.headers.get("retry-after")], [503, "1"])
      assert.deepStrictEqual(yield* Effect.promise(() => response.json()), {
        status: "error",
        task_id: taskIdOf("o", "k"),
        scheduled_for: DateTime.formatIso(at),
        idempotency_key: "k",
        invoices_count: 0,
        invoice_lines_count: 0,
        received_at: null
      })
    })
  )
})
