/** A settler ends its work whatever its clock, the vacuums of Postgres and the number of tasks. */
import { assert } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { TestClock } from "effect/testing"
import { TaskDatabase } from "../../../src/database/Database.ts"
import * as Settling from "../../../src/deletions/Settling.ts"
import { addTasks } from "../../support/deletions/invoiceFixture.ts"
import * as Loaders from "../../support/deletions/loaders.ts"
import { elsewhere, openTransaction, settler, unsettled } from "../../support/deletions/sessions.ts"
import { deleted, single, suite } from "../../support/deletions/support.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"

const invoice = { invoices: [{ invoice_id: "x" }] }

suite("deletions that are to be settled:", single, {
  "no lease outlasts a clock of the database that is set back": Effect.gen(function* () {
    const sql = yield* Loaders.begin()
    yield* deleted("deletion", invoice)
    yield* sql`update deletion_settler set holder = gen_random_uuid(), until = clock_timestamp() + interval '5 s'`
    const { step } = yield* Settling.make
    yield* Effect.replicateEffect(step, 3)
    assert.strictEqual(yield* unsettled, 1)
    yield* sql`update deletion_settler set until = clock_timestamp() + interval '1 hour'`
    yield* Effect.replicateEffect(step, 3)
    assert.strictEqual(yield* unsettled, 0)
  }),
  "wait for no autovacuum, which brings no row": Effect.gen(function* () {
    const sql = yield* Loaders.begin()
    const vacuum = yield* elsewhere
    const open = yield* openTransaction(vacuum, vacuum`select 1`)
    yield* sql`
      create view public.pg_stat_activity as select pid, datid, case when xact_start is null then usesysid end as usesysid
      from pg_catalog.pg_stat_activity`
    yield* deleted("deletion", invoice)
    // A session that has prepared the statement would not see the view.
    const fresh = clientOf((yield* TestDatabase).url, { settings: { search_path: "public, pg_catalog" } })
    const { steps } = yield* Effect.provideServiceEffect(settler, TaskDatabase, fresh)
    yield* steps(2)
    assert.strictEqual(yield* unsettled, 0)
    yield* sql`drop view public.pg_stat_activity`
    yield* open.commit
  }),
  "are settled however long all tasks take together": Effect.gen(function* () {
    const sql = yield* Loaders.begin()
    yield* addTasks(60, { organization_id: "'org_a'", state: "'completed'", unsettled_since: "now()" })
    const run: typeof sql.run = (request, statements) =>
      sql.run({ ...request, within: Duration.millis(1500) }, statements)
    const unsafe = <A extends object>(text: string, values?: ReadonlyArray<unknown>) =>
      sql.unsafe<A>(text.replace("set_config('lock_timeout'", "pg_sleep(0.6), $&"), values)
    const slow = Object.assign(sql.bind(undefined), sql, { run, unsafe })
    const { steps } = yield* Effect.provideService(settler, TaskDatabase, slow)
    yield* TestClock.withLive(steps(2))
    assert.strictEqual(yield* unsettled, 0)
  })
})
