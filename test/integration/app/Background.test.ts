/** Work in the background: each loop goes on after a bug, and the worker takes as much of a pool as there is. */
import { assert, layer } from "@effect/vitest"
import { Array, Duration, Effect, Layer, Logger } from "effect"
import { TestClock } from "effect/testing"
import * as App from "../../../src/app/App.ts"
import { type Database, layerShared } from "../../../src/database/Database.ts"
import { Failure } from "../../../src/database/Store.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import * as Settling from "../../../src/deletions/Settling.ts"
import * as Worker from "../../../src/deletions/Worker.ts"
import { Freshness } from "../../../src/operations/Freshness.ts"
import { HealthChecks, probes } from "../../../src/operations/HealthChecks.ts"
import { ChangeClock } from "../../../src/changes/ChangeClock.ts"
import { delivery, inItsOwnTime, onDatabase } from "../../support/deletions/support.ts"
import { eventually } from "../../support/eventually.ts"
import { InProcess } from "../../support/inProcess.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"

const scheduler = Scheduler.layer(Duration.zero)

const watch = Layer.effectDiscard(Effect.flatMap(ChangeClock, (clock) => Effect.forkScoped(clock.watch)))

const loops = {
  "the clock of the changes": Layer.provide(watch, ChangeClock.layer),
  "the worker": Layer.provide(Worker.layer(Worker.optionsFor(3)), scheduler),
  "the retention of payloads": Layer.provide(Worker.layerRetention(), scheduler),
  "settling deletions": Settling.layer,
  "the probes": Layer.provide(probes(["worker"]), HealthChecks.layerMemory),
  "the ages of the records": Freshness.layer
} as const

layer(
  TestDatabase.layer,
  onDatabase
)((it) => {
  it.effect.each(Object.entries(loops))("%s goes on after bugs", ([, loop]) =>
    Effect.gen(function* () {
      const client = yield* clientOf((yield* TestDatabase).url)
      let calls = 0
      // Its first statements meet a bug, the others find it busy.
      const run: Database["run"] = ({ unavailable }) =>
        Effect.suspend(() =>
          ++calls <= 3 ? Effect.die(new Error("A bug")) : Effect.fail(unavailable(Failure.Busy({ reason: "Busy" })))
        )
      const distribution = { ...client.distribution, refresh: Effect.void, isDistributed: () => false }
      const database: Database = Object.assign(client, { run, distribution })
      yield* Layer.build(Layer.provide(loop, layerShared(database)))
      const later = Effect.andThen(TestClock.adjust("1 second"), TestClock.withLive(Effect.sleep("1 millis")))
      yield* Effect.repeat(later, { until: () => calls >= 4, times: 200 })
      assert.isAtLeast(calls, 4)
    }).pipe(inItsOwnTime)
  )
})

layer(TestDatabase.layer, { excludeTestServices: true })("the intake of a server of others", (it) => {
  it.effect.each([
    [3, 1],
    [5, 3]
  ] as const)("over a pool of %d runs %d transactions at once", ([maxConnections, most]) =>
    Effect.gen(function* () {
      const client = yield* clientOf((yield* TestDatabase).url, { maxConnections })
      const { run: runs } = client
      let [running, found] = [0, 0]
      const count = Effect.sync(() => (found = Math.max(found, ++running)))
      const uncount = Effect.sync(() => running--)
      const run: Database["run"] = (request, statements) =>
        request.key === "the tasks"
          ? Effect.acquireUseRelease(
              count,
              () => runs(request, statements),
              () => uncount
            )
          : runs(request, statements)
      const databases = layerShared(Object.assign(client, { run }))
      const { schedule } = yield* Effect.provide(Scheduler, Layer.provide(scheduler, databases))
      const owners = Array.makeBy(40, (index) => `org_${maxConnections}_${index}`)
      yield* Effect.forEach(owners, (owner) => schedule(delivery("key", undefined, owner)))
      yield* Layer.build(InProcess.layerOf(Layer.provide(App.intake(Duration.zero), databases)))
      const left = client`select from deletion_tasks where state <> 'completed'`
      yield* eventually("that all are completed", left, ({ length }) => length === 0)
      assert.strictEqual(found, most)
    }).pipe(Effect.provide(Logger.layer([])))
  )
})
