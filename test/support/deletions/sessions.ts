/** Other sessions of the database of a test, whose transactions meet those of the service. */
import type { PgClient } from "@effect/sql-pg"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as Sweep from "../../../src/deletions/Sweep.ts"
import { eventually } from "../eventually.ts"
import { clientOf, isDistributed, TestDatabase } from "../TestDatabase.ts"

/** Connections of others, whose transactions stay open for as long as a test needs. */
export const elsewhere = Effect.flatMap(TestDatabase, ({ url }) =>
  clientOf(url, {
    maxConnections: 3,
    connectTimeout: "10 seconds",
    settings: { idle_in_transaction_session_timeout: "0" }
  })
)

/** What another session does in a transaction that stays open until it is told how to end. */
export const openTransaction = Effect.fnUntraced(function* <A, E>(sql: PgClient.PgClient, work: Effect.Effect<A, E>) {
  const began = yield* Deferred.make<void>()
  const end = yield* Deferred.make<void, "rolled back">()
  const fiber = yield* sql
    .withTransaction(Effect.andThen(work, Effect.andThen(Deferred.succeed(began, undefined), Deferred.await(end))))
    .pipe(Effect.exit, Effect.forkScoped)
  // Work that fails would be waited for until the test is out of time.
  const ended = Effect.flatMap(Fiber.join(fiber), (exit) => Effect.die(new Error(`It ended at once: ${String(exit)}`)))
  yield* Effect.raceFirst(Deferred.await(began), ended)
  return {
    commit: Effect.andThen(Deferred.succeed(end, undefined), Fiber.join(fiber)),
    rollback: Effect.andThen(Deferred.fail(end, "rolled back"), Fiber.join(fiber))
  }
})

/** The sweep of a new worker. */
export const settler = Effect.map(Sweep.make, ({ step }) => ({
  step,
  steps: (count: number) => Effect.replicateEffect(step, count, { discard: true })
}))

/** Deletes all tasks and facts, and the rows of tables. */
export const empty = (sql: PgClient.PgClient, ...tables: ReadonlyArray<string>) =>
  Effect.forEach(
    ["deletion_tasks", "deletions", "deletions_unsettled", ...tables],
    (table) => sql`delete from ${sql(table)}`
  )

/** The number of tasks that are to be applied again. */
export const unsettled = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  return (yield* sql`select distinct organization_id, task_id from deletions_unsettled`).length
})

/** Waits for a number of backends that wait for a lock, by a pattern of its event. */
export const waiting = (sql: PgClient.PgClient, event: string, isSo: (count: number) => boolean) =>
  eventually(
    "backends that wait for a lock",
    sql`select 1 from ${sql(isDistributed() ? "citus_stat_activity" : "pg_stat_activity")}
        where datname = current_database() and wait_event_type = 'Lock' and wait_event like ${event}`,
    ({ length }) => isSo(length)
  )

/** Waits until at least so many backends wait for any lock. A statement of a shared connection may wait on two. */
export const locksAwaited = (sql: PgClient.PgClient, count: number) => waiting(sql, "%", (found) => found >= count)

/** Waits for an effect to end, or for a session that waits for a lock of another. */
export const untilDoneOrBlocked = <A, E>(sql: PgClient.PgClient, fiber: Fiber.Fiber<A, E>) =>
  Effect.raceFirst(
    Effect.as(Fiber.await(fiber), "done" as const),
    Effect.as(Effect.orDie(locksAwaited(sql, 1)), "blocked" as const)
  ).pipe(TestClock.withLive)
