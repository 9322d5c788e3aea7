/**
 * A primary whose synchronous standby is lost.
 *
 * @module-tag long
 */
import { assert, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { TaskDatabase } from "../../../src/database/Database.ts"
import { makeScheduler } from "../../../src/deletions/Scheduler.ts"
import { delivery } from "../../support/deletions/tasks.ts"
import { eventually } from "../../support/eventually.ts"
import { clientOf } from "../../support/TestDatabase.ts"
import * as Cluster from "./Cluster.ts"

const open = (url: string) => clientOf(url, { maxConnections: 2, statementTimeout: "5 seconds" })

it.live("A repetition does not confirm a delivery that a synchronous standby lacks", () =>
  Effect.gen(function* () {
    const { sql, url } = yield* Cluster.make()
    const { schedule } = yield* Effect.provideService(makeScheduler(Duration.hours(1)), TaskDatabase, yield* open(url))
    const wants = Effect.fnUntraced(function* (standby: string) {
      yield* sql.unsafe(`alter system set synchronous_standby_names = '${standby}'`)
      yield* sql`select pg_reload_conf()`
      const shown = sql<{ name: string }>`select current_setting('synchronous_standby_names') as name`
      yield* eventually("the setting", shown, ([row]) => row?.name === standby)
    })
    yield* wants("lost")
    for (const time of ["first", "second"]) {
      assert.strictEqual((yield* Effect.flip(schedule(delivery("one"))))._tag, "SchedulerUnavailable", time)
    }
    assert.lengthOf(yield* sql`select from deletion_tasks`, 1)
    yield* wants("")
    assert.strictEqual((yield* schedule(delivery("one"))).status, "duplicate")
  })
)
