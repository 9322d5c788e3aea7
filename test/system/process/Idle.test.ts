/**
 * The costs of an idle process for its Postgres.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import * as Program from "../../support/Program.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

layer(TestDatabase.layerDatabases, { excludeTestServices: true })("An idle process", (it) => {
  it.effect(
    "holds at most 4 sessions after a minute, and runs at most 3 transactions a second",
    () =>
      Effect.gen(function* () {
        const { sql, url } = yield* TestDatabase
        yield* Program.start({ DATABASE_URL: url, OPERATIONS_PORT: "0" })
        const sessions = Effect.map(
          sql<{ sessions: number }>`
            select count(*)::int as sessions from pg_stat_activity
            where datname = current_database() and application_name like 'practice-data-%'`,
          ([row]) => row?.sessions ?? Infinity
        )
        yield* Effect.sleep("45 seconds")
        // A session closes 30 to 60 seconds after its last use.
        const held = yield* Effect.repeat(sessions, {
          until: (found) => found <= 4,
          schedule: Schedule.spaced("1 second"),
          times: 40
        })
        assert.isAtMost(held, 4)
        const count = Effect.map(
          sql<{
            total: number
          }>`select xact_commit::int as total from pg_stat_database where datname = current_database()`,
          ([row]) => row?.total ?? Number.NaN
        )
        // The server adds up at most once a second, and an autovacuum may be among them.
        const start = yield* count
        yield* Effect.sleep("20 seconds")
        assert.isAtMost(((yield* count) - start) / 20, 3.3)
      }).pipe(Effect.scoped),
    180_000
  )
})
