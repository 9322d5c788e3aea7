/** Claims whose response was lost. */
import { assert } from "@effect/vitest"
import { Duration, Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { TestClock } from "effect/testing"
import { TaskDatabase } from "../../../src/database/Database.ts"
import * as Claims from "../../../src/deletions/Claims.ts"
import { SchedulerUnavailable } from "../../../src/deletions/Task.ts"
import { delay, delivery, inItsOwnTime, overPostgres, scheduled } from "../../support/deletions/support.ts"

overPostgres("a claim", (it) =>
  it.effect("whose response was lost is released, without an attempt, before the next", () =>
    Effect.gen(function* () {
      const sql = yield* TaskDatabase
      let isLost = true
      const claim = Claims.make({
        sql,
        distribution: sql.distribution,
        run: <A>(statement: Effect.Effect<A, SqlError>) =>
          Effect.filterOrFail(
            Effect.orDie(statement),
            () => !isLost,
            () => new SchedulerUnavailable({ message: "No response" })
          )
      })
      const { taskId } = yield* scheduled(delivery("1"))
      yield* TestClock.adjust(delay)
      yield* Effect.flip(claim({ due: 1 }, Duration.hours(1)))
      isLost = false
      const claims = yield* claim({ due: 1 }, Duration.hours(1))
      assert.deepStrictEqual(
        claims.map(({ attempt, taskId: id }) => [id, attempt]),
        [[taskId, 1]]
      )
    }).pipe(inItsOwnTime)
  )
)
