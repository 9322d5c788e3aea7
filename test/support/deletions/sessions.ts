/** Other sessions of the database of a test, whose transactions meet those of the service. */
import type { PgClient } from "@effect/sql-pg"
import { Deferred, Effect, Fiber, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { clientOf, TestDatabase } from "../TestDatabase.ts"

/** A connection beside those of the scheduler. */
export const elsewhere = Effect.flatMap(TestDatabase, ({ url }) => clientOf(url, { maxConnections: 3 }))

/** What another session does in a transaction that stays open until it is told how to end. */
export const openTransaction = Effect.fnUntraced(function* <A, E>(sql: PgClient.PgClient, work: Effect.Effect<A, E>) {
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
