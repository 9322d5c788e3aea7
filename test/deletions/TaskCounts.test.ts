/** How many tasks there are to do. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as TaskCounts from "../../src/deletions/TaskCounts.ts"
import { TestDatabase } from "../support/TestDatabase.ts"
import { Tasks } from "./taskFixture.ts"

layer(Tasks.layer, { excludeTestServices: true })("the tasks there are to do", (it) => {
  it.effect("are counted by state, with the time at which the first one is due", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const counts = yield* TaskCounts.read(sql)
      assert.deepInclude(counts, { scheduled: 1, running: 1, dead: 1 })
      const [first] = yield* sql<{ due: Date }>`select min(due_at) as due from deletion_tasks`
      assert.closeTo(counts?.firstDue ?? 0, first?.due.getTime() ?? -1, 1)
    })
  )

  it.effect("are counted without a look at those that are completed", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* sql`
        insert into deletion_tasks (organization_id, id, idempotency_key, fingerprint, payload, invoices_count,
          invoice_lines_count, received_at, scheduled_for, state)
        select 'org_old', gen_random_uuid(), 'key ' || n, '', '{}', 0, 0, now(), now(), 'completed'
        from generate_series(1, 5000) n`
      yield* sql`analyze deletion_tasks`
      const [read] = yield* sql.withTransaction(
        Effect.andThen(
          TaskCounts.read(sql),
          sql<{ rows: number }>`
            select (seq_tup_read + idx_tup_fetch)::int as rows from pg_stat_xact_user_tables where relname = 'deletion_tasks'`
        )
      )
      assert.isBelow(read?.rows ?? Infinity, 200)
    })
  )
})
