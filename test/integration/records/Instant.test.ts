/** Points in time in Postgres. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as Instant from "../../../src/api/records/Instant.ts"
import { integer } from "../../support/arbitraries.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

// The years 1 to 9999, and a day around them, which offsets reach.
const [first, last] = [-62_135_683_200_000, 253_402_387_199_999]

layer(TestDatabase.layer, { excludeTestServices: true })((it) => {
  it.effect.prop(
    "Postgres reads any instant as the same point in time, to the microsecond",
    { millis: integer(first, last), beyond: integer(0, 999) },
    ({ millis, beyond }) =>
      Effect.gen(function* () {
        const { sql } = yield* TestDatabase
        const given = [millis, first, last, -1, 0].map((time) => Instant.fromMillis(time) + BigInt(beyond))
        const [row] = yield* sql<{ micros: ReadonlyArray<string> }>`
          select array_agg((extract(epoch from t) * 1000000)::bigint::text order by n) as micros
          from unnest(${given.map(Instant.toPostgres)}::timestamptz[]) with ordinality as given(t, n)`
        assert.deepStrictEqual(row?.micros.map(BigInt), given)
      })
  )
})
