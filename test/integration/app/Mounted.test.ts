/** The APIs in a server of others. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as App from "../../../src/app/App.ts"
import { OrgResolver } from "../../../src/keys/OrgResolver.ts"
import { PspClient } from "../../../src/psp/PspClient.ts"
import { InProcess, send } from "../../support/inProcess.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { live } from "../../support/tries.ts"

const dataApi = App.dataApi.pipe(
  Layer.provide(OrgResolver.layerMemory({ my_key: "org_oakridge" })),
  Layer.provide(App.services),
  Layer.provide([TestDatabase.shared, PspClient.layerNotConfigured])
)

layer(InProcess.layerOf(Layer.provide(dataApi, TestDatabase.layerDemo)), live)("the data API", (it) => {
  it.effect("of a server of others looks keys up with the OrgResolver that it is given", () =>
    Effect.gen(function* () {
      for (const [key, expected] of [
        ["my_key", 200],
        ["pda_demo_oakridge", 401]
      ] as const) {
        const { status } = yield* send({ headers: { authorization: `Bearer ${key}` } })
        assert.strictEqual(status, expected, key)
      }
    })
  )
})
