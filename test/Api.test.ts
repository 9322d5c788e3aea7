/** The data API composed from fakes and asked by its typed client: no socket, no database. The README quotes this. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { HttpServer } from "effect/http"
import { HttpApiTest } from "effect/http-api"
import { DataApi } from "../src/api/DataApi.ts"
import * as Client from "../src/api/Client.ts"
import { organizations, recordsOf } from "../src/demo/DemoData.ts"
import { OrgResolver } from "../src/keys/OrgResolver.ts"
import { Repositories } from "../src/records/Repositories.ts"
import * as Server from "../src/Server.ts"
import * as App from "../src/App.ts"

const services = Layer.mergeAll(
  App.servicesMemory,
  Repositories.layerMemory({ charges: recordsOf(organizations[0]).charges }),
  OrgResolver.layerMemory({ my_key: "org_oakridge" })
)

const openCharges = Effect.gen(function* () {
  const client = yield* HttpApiTest.groups(DataApi, ["charges"])
  return yield* client.charges.search({ payload: { status: "open", limit: 2 } })
}).pipe(
  Effect.provide(Server.dataApiHandlers.pipe(Layer.provide(services))),
  Effect.provide([Client.layerKey(Redacted.make("my_key")), HttpServer.layerServices])
)

it.effect("the data API runs on fakes, behind its typed client", () =>
  Effect.gen(function* () {
    const { body } = yield* openCharges
    assert.deepStrictEqual(
      body.map(({ id, outstanding_balance }) => [id, outstanding_balance]),
      [
        ["charge_oakridge_0001", 162.05],
        ["charge_oakridge_0005", 162.05]
      ]
    )
  })
)
