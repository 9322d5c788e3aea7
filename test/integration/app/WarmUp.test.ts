/** The warm-up of a start. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { warmUp } from "../../../src/app/WarmUp.ts"
import { RequestObservers } from "../../../src/observability/RequestFacts.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

/** The paths that a warm-up asks for, and the numbers of observers that it has. */
const warmed = Effect.gen(function* () {
  const paths = new Set<string>()
  const observers = new Set<number>()
  const app = Effect.gen(function* () {
    paths.add((yield* HttpServerRequest.HttpServerRequest).url)
    observers.add((yield* RequestObservers).length)
    return HttpServerResponse.text("page")
  })
  yield* warmUp(app, Context.make(RequestObservers, [() => {}]))
  return { paths, observers: [...observers] }
})

layer(TestDatabase.layerDatabases, { excludeTestServices: true })("the warm-up", (it) => {
  it.effect("serves searches and single records that nobody observes; nothing while a migration is missing", () =>
    Effect.gen(function* () {
      const { observers, paths } = yield* warmed
      assert.deepStrictEqual(observers, [0])
      for (const path of ["/api/v3/pets/search", "/api/v3/consumption-logs/get"]) assert.isTrue(paths.has(path), path)
      const { sql } = yield* TestDatabase
      yield* sql`delete from migrations where migration_id = (select max(migration_id) from migrations)`
      assert.strictEqual((yield* warmed).paths.size, 0)
    })
  )
})
