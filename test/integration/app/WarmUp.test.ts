/** The warm-up of a start. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { warmUp } from "../../../src/app/WarmUp.ts"
import { RequestObservers } from "../../../src/observability/RequestFacts.ts"
import { HealthChecks } from "../../../src/operations/HealthChecks.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

/** The paths that a warm-up asks for, and the numbers of observers that it has. */
const warmed = Effect.fnUntraced(function* (isReady: boolean) {
  const paths = new Set<string>()
  const observers = new Set<number>()
  const app = Effect.gen(function* () {
    paths.add((yield* HttpServerRequest.HttpServerRequest).url)
    observers.add((yield* RequestObservers).length)
    return HttpServerResponse.text("page")
  })
  const health = yield* Effect.provide(HealthChecks, HealthChecks.layerMemory)
  yield* warmUp(app, Context.make(RequestObservers, [() => {}])).pipe(
    Effect.provideService(HealthChecks, { ...health, isReady: Effect.succeed(isReady) })
  )
  return { paths, observers: [...observers] }
})

layer(TestDatabase.layerDatabases, { excludeTestServices: true })("the warm-up", (it) => {
  it.effect("serves searches and single records that nobody observes", () =>
    Effect.gen(function* () {
      const { observers, paths } = yield* warmed(true)
      assert.deepStrictEqual(observers, [0])
      for (const path of ["/api/v3/pets/search", "/api/v3/consumption-logs/get"]) assert.isTrue(paths.has(path), path)
    })
  )

  it.effect("serves nothing while the database is not migrated", () =>
    Effect.map(warmed(false), ({ paths }) => assert.strictEqual(paths.size, 0))
  )
})
