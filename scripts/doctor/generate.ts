/** Writes `src/operations/doctor/migrated.json`: what a database consists of that has all migrations. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { Reactivity } from "effect/reactivity"
import * as Embedded from "../../src/database/Embedded.ts"
import { migrate } from "../../src/database/Migrations.ts"
import { made } from "./made.ts"

Effect.gen(function* () {
  const { sql } = yield* Embedded.connect("memory")
  yield* migrate(sql)
  const text = yield* made(sql)
  yield* Effect.sync(() => writeFileSync(join(import.meta.dirname, "../../src/operations/doctor/migrated.json"), text))
}).pipe(Effect.scoped, Effect.provide([NodeServices.layer, Reactivity.layer]), NodeRuntime.runMain)
