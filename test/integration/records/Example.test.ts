/** The examples of src/api/records/README.md: a resource, an index for a filter, and an error that the API lacks. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it as test, layer } from "@effect/vitest"
import { Arbitrary, Effect, Layer, Redacted, Schema } from "effect"
import { HttpServer } from "effect/http"
import { HttpApi, HttpApiBuilder, HttpApiTest } from "effect/http-api"
import { Authorization } from "../../../src/api/Authorization.ts"
import * as Client from "../../../src/api/Authorization.ts"
import { JsonBody } from "../../../src/api/JsonBody.ts"
import { all, migrate } from "../../../src/database/Migrations.ts"
import * as JsonBodyServer from "../../../src/http/JsonBodyServer.ts"
import * as AuthorizationServer from "../../../src/keys/AuthorizationServer.ts"
import { OrgResolver } from "../../../src/keys/OrgResolver.ts"
import { handlersOf } from "../../../src/records/Handlers.ts"
import { ChangeClock } from "../../../src/records/ChangeClock.ts"
import { Repositories } from "../../../src/records/Repository.ts"
import * as Arbitraries from "../../support/arbitraries.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import vaccinationsTable from "./example/00019_vaccinations.ts"
import petsBreed from "./example/00019_pets_breed.ts"
import { Vaccination, vaccinations } from "./example/Vaccinations.ts"
import { fill } from "./stores.ts"

class ExampleApi extends HttpApi.make("example")
  .add(vaccinations.group)
  .middleware(JsonBody)
  .middleware(Authorization) {}

const handlers = HttpApiBuilder.group(ExampleApi, "vaccinations", (group) =>
  Effect.map(Repositories, ({ of }) => group.handleAll(handlersOf(of(vaccinations))))
).pipe(
  Layer.provideMerge([AuthorizationServer.layer, JsonBodyServer.layer({ maxBytes: 1000 })]),
  Layer.provide(OrgResolver.layerMemory({ my_key: "org_a" }))
)

const client = Effect.provide(HttpApiTest.groups(ExampleApi, ["vaccinations"]), [
  Client.layerKey(Redacted.make("my_key")),
  HttpServer.layerServices
])

const migrated = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  yield* migrate(sql, { ...all, "90005_vaccinations": vaccinationsTable, "90006_pets_breed": petsBreed })
})

const root = join(import.meta.dirname, "../../..")

const unindented = (text: string) => text.replace(/^ +/gm, "")

/** The code of a file, from its first declaration on, without indentation. */
const codeOf = (file: string) => {
  const text = readFileSync(join(root, file), "utf8")
  return unindented(text.slice(text.search(/^export/m)).trim())
}

layer(Layer.provideMerge(Layer.effectDiscard(migrated), TestDatabase.layerDatabases), { excludeTestServices: true })(
  (it) => {
    it.effect("a new resource is served by what follows from its file and its migration", () =>
      Effect.gen(function* () {
        const [records = []] = yield* Arbitrary.sampleEffect(
          Arbitraries.recordsOf(vaccinations, { minLength: 24, maxLength: 24 }),
          { count: 1, size: 24, seed: "vaccinations" }
        )
        const rows = yield* fill({ resource: vaccinations, records })
        const repositories = Layer.provide(Repositories.layer, ChangeClock.layer)
        const api = yield* Effect.provide(client, Layer.provide(handlers, repositories))
        const { body } = yield* api.vaccinations.search({ payload: { include_boosters: true } })
        const own = rows.filter((row) => row.organization === "org_a")
        assert.isNotEmpty(own)
        const decode = Schema.decodeEffect(Schema.fromJsonString(Vaccination))
        assert.sameDeepMembers([...body], yield* Effect.forEach(own, ({ json }) => decode(json)))
        for (const record of body) {
          assert.deepStrictEqual(yield* api.vaccinations.get({ payload: { id: record.id } }), record)
        }
        const first = yield* api.vaccinations.search({ payload: {} })
        assert.deepStrictEqual(
          first.body,
          body.filter(({ isBooster }) => !isBooster)
        )
      })
    )
  }
)

test("the guide quotes the examples as they are", () => {
  const guide = unindented(readFileSync(join(root, "src/api/records/README.md"), "utf8"))
  for (const file of ["example/00019_pets_breed.ts", "example/OffsetTooDeep.ts"]) {
    assert.include(guide, codeOf(`test/integration/records/${file}`))
  }
})
