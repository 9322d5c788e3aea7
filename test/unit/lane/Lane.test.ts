/** The reads that the lane answers, and the limit of requests there. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { Unauthorized } from "../../../src/api/Errors.ts"
import * as AuthorizationServer from "../../../src/keys/AuthorizationServer.ts"
import { OrgResolver } from "../../../src/keys/OrgResolver.ts"
import * as Reads from "../../../src/lane/Reads.ts"
import { key, layerDemo, organization, paths } from "../../support/inProcess.ts"

const search = "/api/v3/charges/search"

describe("The lane", () => {
  it.effect("has every endpoint of records but that of the organization", () =>
    Effect.map(Effect.provide(Reads.make, layerDemo), (reads) =>
      assert.sameMembers(
        Array.from(reads.keys()),
        paths.filter((path) => path !== "/api/v3/organization/get")
      )
    )
  )

  it.effect("leaves a request that waits for changes to the router, and one that is not valid as it is", () =>
    Effect.map(Effect.provide(Reads.make, layerDemo), (reads) => {
      const isRead = (path: string, payload: unknown) => reads.get(path)?.(payload, key) !== undefined
      assert.deepStrictEqual(
        [0, null, 1].map((wait) => isRead("/api/v3/changes", { wait })),
        [true, true, false]
      )
      assert.deepStrictEqual(
        [{}, { limit: 0 }, { limit: "1" }, { more: 1 }, []].map((payload) => isRead(search, payload)),
        [true, true, false, false, false]
      )
    })
  )

  it.effect("counts requests by organization: 429 beyond the limit, and 401 once the key is revoked", () => {
    let revoked: string | undefined
    const resolver = Layer.succeed(
      OrgResolver,
      OrgResolver.of({
        resolve: (given) =>
          Effect.suspend(() =>
            Redacted.value(given) === revoked ? Effect.fail(new Unauthorized()) : Effect.succeed(organization)
          )
      })
    )
    return Effect.gen(function* () {
      const reads = yield* Reads.make
      const statusOf = (given: string) =>
        Effect.map(reads.get(search)?.({}, given) ?? Effect.die("It is not of the lane"), ({ status }) => status)
      const statuses = yield* Effect.forEach([key, "pda_another", key], statusOf)
      assert.deepStrictEqual(statuses, [200, 200, 429])
      revoked = key
      assert.deepStrictEqual(yield* Effect.forEach([key, "pda_another"], statusOf), [401, 429])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Effect.forEach([key, "pda_another", "pda_another"], statusOf), [401, 200, 200])
    }).pipe(Effect.provide(Layer.mergeAll(layerDemo, resolver, AuthorizationServer.layerLimit(2))))
  })
})
