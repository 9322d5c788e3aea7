/** The examples of src/api/records/README.md: a resource, an index for a filter, and an error that the API lacks. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it as test, layer } from "@effect/vitest"
import { Arbitrary, Effect, Layer } from "effect"
import { all, migrate } from "../../../src/database/Migrations.ts"
import { toText } from "../../../src/database/RecordJson.ts"
import * as Arbitraries from "../../support/arbitraries.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { scriptOf } from "../../../src/database/script.ts"
import own from "./example/own.ts"
import { vaccinations } from "./example/Vaccinations.ts"
import { asKnown, storesOf } from "./stores.ts"

const migrated = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  const table = scriptOf(new URL("./example/00005_vaccinations.sql", import.meta.url))
  yield* migrate(sql, { ...all, "00005_vaccinations": table, ...own })
})

const root = join(import.meta.dirname, "../../..")

const unindented = (text: string) => text.replace(/^ +/gm, "")

/** The code of a file, from its first declaration on, without indentation. */
const codeOf = (file: string) => {
  const text = readFileSync(join(root, file), "utf8")
  return unindented(text.slice(text.search(/^(export|const)/m)).trim())
}

layer(Layer.provideMerge(Layer.effectDiscard(migrated), TestDatabase.layerDatabases), { excludeTestServices: true })(
  (it) => {
    it.effect("a new resource has its queries and its fake by its file and its migration alone", () =>
      Effect.gen(function* () {
        const [records = []] = yield* Arbitrary.sampleEffect(
          Arbitraries.recordsOf(vaccinations, { minLength: 24, maxLength: 24 }),
          { count: 1, size: 24, seed: "vaccinations" }
        )
        const { memory, postgres } = yield* storesOf({ resource: vaccinations, records })
        const found: Array<string> = []
        for (const criteria of [{}, { include_boosters: true }]) {
          const page = { limit: 100, offset: 0 }
          found.push(toText(yield* postgres.search(criteria, page)))
          assert.strictEqual(found.at(-1), toText(yield* memory.search(criteria, page)))
        }
        const [withoutBoosters = "", withBoosters = ""] = found
        assert.isAbove(withBoosters.length, withoutBoosters.length)
        assert.include(withoutBoosters, '"isBooster":false')
      }).pipe(asKnown("org_a"))
    )
  }
)

test("the guide quotes the examples as they are", () => {
  const guide = unindented(readFileSync(join(root, "src/api/records/README.md"), "utf8"))
  for (const file of ["example/own.ts", "example/OffsetTooDeep.ts"]) {
    assert.include(guide, codeOf(`test/integration/records/${file}`))
  }
})
