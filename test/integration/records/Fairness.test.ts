/** The reads of one key leave connections for those of others. */
import { assert, layer } from "@effect/vitest"
import { Array, Effect, Fiber, Layer } from "effect"
import { eventually } from "../../support/eventually.ts"
import * as Http from "../../support/inProcess.ts"
import { services, store } from "../../support/inProcessPostgres.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const server = Layer.unwrap(
  Effect.map(Effect.context<Layer.Success<typeof store>>(), (context) =>
    Http.InProcess.layer(Layer.orDie(services).pipe(Layer.provide(Layer.succeedContext(context))))
  )
)

const theOther = { headers: { authorization: `Bearer ${Http.other.key}` }, path: "/api/v3/pets/search" }

layer(Layer.provideMerge(server, store), { excludeTestServices: true })("the reads of one key", (it) => {
  it.effect("that wait for a lock delay no other key, and get a 503 that says busy after a second", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      assert.strictEqual((yield* Http.send(theOther)).status, 200)
      const locked = Effect.gen(function* () {
        yield* sql`lock table charges in access exclusive mode`
        const stuck = yield* Effect.forEach(Array.range(1, 64), () =>
          Effect.forkScoped(Http.send(), { startImmediately: true })
        )
        yield* eventually(
          "a read that waits for the lock",
          sql`select 1 from pg_locks where relation = 'charges'::regclass and not granted`,
          ({ length }) => length > 0
        )
        assert.strictEqual((yield* Http.send(theOther)).status, 200)
        assert.isTrue(stuck.some((fiber) => fiber.pollUnsafe() === undefined))
        const answers = yield* Effect.forEach(stuck, Fiber.join, { concurrency: "unbounded" })
        for (const { headers, json, status } of answers) {
          assert.deepStrictEqual([status, json], [503, { detail: "The record store is busy" }])
          assert.strictEqual(headers["retry-after"], "1")
        }
      })
      yield* Effect.scoped(sql.withTransaction(locked))
      assert.strictEqual((yield* Http.send()).status, 200)
    })
  )
})
