/** Other sessions of the database of a test, whose transactions meet those of the service. */
import { Deferred, Effect, Fiber, Redacted, Schedule } from "effect"
import { Reactivity } from "effect/reactivity"
import { TestClock } from "effect/testing"
import { connect } from "../../../src/database/Database.ts"
import { TestDatabase } from "../TestDatabase.ts"

/** A connection beside those of the scheduler. */
export const elsewhere = Effect.gen(function* () {
  const { url } = yield* TestDatabase
  return yield* connect({
    url: Redacted.make(url),
    applicationName: "practice-data-test-elsewhere",
    maxConnections: 3,
    statementTimeout: "1 minute"
  })
}).pipe(Effect.provide(Reactivity.layer))

/** What another session does in a transaction that stays open until it is told how to end. */
export const openTransaction = Effect.fnUntraced(function* <A, E>(
  sql: Effect.Success<typeof elsewhere>,
  work: Effect.Effect<A, E>
) {
  const began = yield* Deferred.make<void>()
  const end = yield* Deferred.make<void, "rolled back">()
  const fiber = yield* sql
    .withTransaction(Effect.andThen(work, Effect.andThen(Deferred.succeed(began, undefined), Deferred.await(end))))
    .pipe(Effect.exit, Effect.forkScoped)
  yield* Deferred.await(began)
  return {
    commit: Effect.andThen(Deferred.succeed(end, undefined), Fiber.join(fiber)),
    rollback: Effect.andThen(Deferred.fail(end, "rolled back"), Fiber.join(fiber))
  }
})

/** Waits for an effect to end, or for a session that waits for a lock of another. */
export const untilDoneOrBlocked = Effect.fnUntraced(function* <A, E>(
  sql: Effect.Success<typeof elsewhere>,
  fiber: Fiber.Fiber<A, E>
) {
  const ask = sql`
    select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.pipe(
    Effect.map((rows) => (fiber.pollUnsafe() !== undefined ? "done" : rows.length > 0 ? "blocked" : "busy"))
  )
  return yield* Effect.repeat(ask, {
    until: (state) => state !== "busy",
    schedule: Schedule.spaced("5 millis"),
    times: 2000
  }).pipe(TestClock.withLive)
})
