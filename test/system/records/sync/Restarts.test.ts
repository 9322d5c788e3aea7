/**
 * Clients that keep a copy while the program is killed and started again, and are told nothing of it.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Array, Effect } from "effect"
import { options } from "../../../support/Service.ts"
import * as Process from "../../../support/Process.ts"
import { freePort } from "../../../support/LocalPostgres.ts"
import { connect } from "./ask.ts"
import { byChanges, bySearch, Copied, inStep, organization } from "./service.ts"

const products = { name: "products", time: "modified_at", since: "modified_since", hasDeleted: false }

layer(Copied.layer, options)("a copy is whole", (it) => {
  it.effect("when the program was killed and started again while it was read", () =>
    Effect.gen(function* () {
      const { key, sql, url } = yield* Copied
      const port = yield* freePort
      const start = Effect.gen(function* () {
        const program = yield* Process.start({ DATABASE_URL: url, ROLES: "data-api", PORT: `${port}` })
        yield* program.address
        return program
      })
      yield* sql`insert into products (organization_id, id, modified_at)
        select ${organization}, n, now() - interval '1 year' from generate_series(1, 5000) n`
      const change = Effect.forEach(Array.range(1, 20), (round) =>
        sql`update products set product_name = ${`changed ${round}`}, modified_at = now()
          where organization_id = ${organization} and id like ${`%${round}`}`.pipe(Effect.delay("50 millis"))
      )
      const life = Effect.scoped(
        Effect.gen(function* () {
          const program = yield* start
          yield* change
          yield* program.kill("SIGKILL")
          assert.deepStrictEqual(yield* program.ended, { code: null, signal: "SIGKILL" })
        })
      )
      const ask = connect(`http://127.0.0.1:${port}`, key)
      const clients = [byChanges(ask, "products", 100), bySearch(ask, products, 100)].map(
        (client) => ["products", client] as const
      )
      const writers = Effect.andThen(Effect.repeat(life, { times: 2 }), start)
      yield* inStep(clients, writers)
    })
  )
})
