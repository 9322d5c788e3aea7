/** Writes the files that describe a database with all migrations: `migrated.json` for the doctor, and the dictionary. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { Reactivity } from "effect/reactivity"
import * as Embedded from "../../src/database/Embedded.ts"
import { migrate } from "../../src/database/Migrations.ts"
import { dictionary } from "./dictionary.ts"
import { made } from "./made.ts"

Effect.gen(function* () {
  const { sql } = yield* Embedded.connect("memory")
  yield* migrate(sql)
  const operations = join(import.meta.dirname, "../../src/operations")
  const texts = { "doctor/migrated.json": yield* made(sql), "DICTIONARY.md": yield* dictionary(sql) }
  yield* Effect.sync(() => {
    for (const [name, text] of Object.entries(texts)) writeFileSync(join(operations, name), text)
  })
}).pipe(Effect.scoped, Effect.provide([NodeServices.layer, Reactivity.layer]), NodeRuntime.runMain)
