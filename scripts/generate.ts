/** Writes the generated file: the dictionary of the tables. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { Reactivity } from "effect/reactivity"
import * as Embedded from "../src/database/Embedded.ts"
import { migrate } from "../src/database/Migrations.ts"
import { dictionary } from "./doctor/dictionary.ts"

Effect.gen(function* () {
  const sql = yield* Embedded.connect("memory")
  yield* migrate(sql)
  writeFileSync(join(import.meta.dirname, "../src/operations/DICTIONARY.md"), yield* dictionary(sql))
}).pipe(Effect.scoped, Effect.provide([NodeServices.layer, Reactivity.layer]), NodeRuntime.runMain)
