/** Docstrings begin with a noun or a verb in the third person. */
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"

const root = join(import.meta.dirname, "../..")

it("no docstring begins with a relative clause", () => {
  // Migrations are never edited.
  const files = globSync("src/**/*.ts", { cwd: root, exclude: ["src/database/migrations/0*"] })
  const found = files.flatMap((file) =>
    [
      ...readFileSync(join(root, file), "utf8").matchAll(
        /\/\*\*[\s*]+((?:What|Who|Whoever|Whether|How|That of|Those of)\b.*)/g
      )
    ].map(([, text]) => `${file}: ${text}`)
  )
  assert.isAbove(files.length, 100)
  assert.deepStrictEqual(found, [])
})
