/** The probes of the databases. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { layerShared } from "../../../src/database/Database.ts"
import { HealthChecks } from "../../../src/operations/HealthChecks.ts"
import * as Probes from "../../../src/operations/Probes.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"

layer(TestDatabase.layer, { excludeTestServices: true })("probes", (it) => {
  it.effect("have a connection to each database before what is built over them, such as the listener, begins", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      const applicationName = `probes-${process.pid}`
      const database = yield* clientOf(url, { applicationName, maxConnections: 2 })
      const connections = sql`select from pg_stat_activity where application_name = ${applicationName}`
      assert.lengthOf(yield* connections, 0)
      yield* Layer.build(
        Probes.layer(["worker"]).pipe(Layer.provide([layerShared(database), HealthChecks.layerMemory]))
      )
      assert.isAbove((yield* connections).length, 0)
    })
  )
})
