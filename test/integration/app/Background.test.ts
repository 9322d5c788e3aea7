/** The worker of a server of others takes as much of a pool as there is. */
import { assert, layer } from "@effect/vitest"
import { Array, Duration, Effect, Layer, Logger } from "effect"
import * as App from "../../../src/app/App.ts"
import { type Database, layerShared } from "../../../src/database/Database.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { delivery } from "../../support/deletions/support.ts"
import { eventually } from "../../support/eventually.ts"
import { InProcess } from "../../support/inProcess.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"

const scheduler = Scheduler.layer(Duration.zero)

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
