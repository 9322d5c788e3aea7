/** Writes the generated files: the dictionary of the tables, and the metrics in the operators' guide. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { Reactivity } from "effect/reactivity"
import * as Embedded from "../src/database/Embedded.ts"
import { migrate } from "../src/database/Migrations.ts"
import { dictionary } from "./doctor/dictionary.ts"
import { guide } from "./operations/metrics.ts"

Effect.gen(function* () {
  const sql = yield* Embedded.connect("memory")
  yield* migrate(sql)
  const texts = {
    "operations/DICTIONARY.md": yield* dictionary(sql),
    "operations/README.md": guide()
  }
  for (const [path, text] of Object.entries(texts)) writeFileSync(join(import.meta.dirname, "../src", path), text)
}).pipe(Effect.scoped, Effect.provide([NodeServices.layer, Reactivity.layer]), NodeRuntime.runMain)
