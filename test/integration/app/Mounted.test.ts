/** The APIs in a server of others. */
import { assert, layer } from "@effect/vitest"
import { Array, Duration, Effect, Layer, Logger } from "effect"
import * as App from "../../../src/app/App.ts"
import { type Database, layerShared } from "../../../src/database/Database.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { delivery } from "../../support/deletions/support.ts"
import { eventually } from "../../support/eventually.ts"
import { OrgResolver } from "../../../src/keys/OrgResolver.ts"
import { PspClient } from "../../../src/psp/PspClient.ts"
import { InProcess, send } from "../../support/inProcess.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"

const scheduler = Scheduler.layer(Duration.zero)
const intake = Layer.provide(App.intake(Duration.zero), App.intakeServices(Duration.zero))

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
      yield* Layer.build(InProcess.layerOf(Layer.provide(intake, databases)))
      const left = client`select from deletion_tasks where state <> 'completed'`
      yield* eventually("that all are completed", left, ({ length }) => length === 0)
      assert.strictEqual(found, most)
    }).pipe(Effect.provide(Logger.layer([])))
  )
})

const search = (key: string) => send({ headers: { authorization: `Bearer ${key}` } })

layer(TestDatabase.layerDemo, { excludeTestServices: true })("the data API of a server of others", (it) => {
  it.effect("looks keys up with the OrgResolver that it is given", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const dataApi = App.dataApi.pipe(
        Layer.provide(OrgResolver.layerMemory({ my_key: "org_oakridge" })),
        Layer.provide(App.services),
        Layer.provide([layerShared(sql), PspClient.layerNotConfigured])
      )
      const responses = yield* Effect.provide(
        Effect.forEach(["my_key", "pda_demo_oakridge"], search),
        InProcess.layerOf(dataApi)
      )
      assert.deepStrictEqual(
        responses.map(({ status }) => status),
        [200, 401]
      )
    })
  )
})
