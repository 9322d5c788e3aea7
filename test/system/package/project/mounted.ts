/** Both APIs in a server of the project's own, asked by their typed clients. */
import { deepStrictEqual } from "node:assert"
import { createServer } from "node:http"
import { NodeHttpServer, NodeServices } from "@effect/platform-node"
import { Duration, Effect, Layer, Redacted } from "effect"
import { FetchHttpClient, HttpRouter, HttpServer } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import { Client, DataApi, IntakeApi } from "practice-data"
import { App, PspClient } from "practice-data/server"

const delay = Duration.minutes(1)
const routes = Layer.merge(App.dataApi, App.intake(delay))

const server = HttpRouter.serve(routes, { disableLogger: true }).pipe(
  Layer.provideMerge(NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: 0 })),
  Layer.provide([App.services, App.intakeServices(delay)]),
  Layer.provide([App.databases, PspClient.layerNotConfigured]),
  Layer.provide(NodeServices.layer)
)

const program = Effect.gen(function* () {
  const url = HttpServer.formatAddress((yield* HttpServer.HttpServer).address)
  const data = yield* HttpApiClient.make(DataApi, { baseUrl: `${url}/api/v3` })
  const intake = yield* HttpApiClient.make(IntakeApi, { baseUrl: `${url}/api/v1` })
  const key = "delivery-1"

  const missing = yield* Effect.flip(data.charges.get({ payload: { id: "charge_nowhere" } }))
  deepStrictEqual(missing._tag, "RecordNotFound")

  const receipt = yield* intake["invoice-deletions"].schedule({
    headers: { "idempotency-key": key, "x-organization-id": "org_oakridge" },
    payload: { invoices: [{ invoice_id: "invoice_oakridge_0001" }] }
  })
  deepStrictEqual(receipt.status, "scheduled")
  const task = yield* data["deletion-tasks"].get({ payload: { idempotency_key: key } })
  deepStrictEqual(task.task_id, receipt.task_id)
})

await program.pipe(
  Effect.provide(server),
  Effect.provide([Client.layerKey(Redacted.make("pda_demo_oakridge")), FetchHttpClient.layer]),
  Effect.scoped,
  Effect.runPromise
)
