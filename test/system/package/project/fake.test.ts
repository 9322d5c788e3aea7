/** A project's own tests, by vitest: what it tests asks the API, one fake of which is replaced. */
import { Effect, Layer, Redacted } from "effect"
import { HttpServer } from "effect/http"
import { HttpApiTest } from "effect/http-api"
import { expect, test } from "vitest"
import { Client, DataApi, Errors } from "practice-data"
import { Server } from "practice-data/server"
import { DemoData, OrgResolver, Repositories, servicesMemory } from "practice-data/testing"

const [oakridge] = DemoData.organizations

const namesOfClinics = Effect.gen(function* () {
  const client = yield* HttpApiTest.groups(DataApi, ["clinics"])
  const { body } = yield* client.clinics.search({ payload: {} })
  return body.map(({ name }) => name)
})

const over = (keys: Layer.Layer<OrgResolver>) =>
  namesOfClinics.pipe(
    Effect.provide(
      Server.dataApiHandlers.pipe(
        Layer.provide(Layer.mergeAll(servicesMemory, Repositories.layerMemory(DemoData.recordsOf(oakridge)), keys))
      )
    ),
    Effect.provide([Client.layerKey(Redacted.make("my_key")), HttpServer.layerServices]),
    Effect.scoped
  )

test("reads the demo data", async () => {
  await expect(Effect.runPromise(over(OrgResolver.layerMemory({ my_key: "org_oakridge" })))).resolves.toEqual([
    "Oakridge Veterinary Group North",
    "Oakridge Veterinary Group South"
  ])
})

test("a store of keys that is down is an error of its own", async () => {
  await expect(Effect.runPromise(Effect.flip(over(OrgResolver.layerDown)))).resolves.toBeInstanceOf(
    Errors.CredentialStoreDown
  )
})
