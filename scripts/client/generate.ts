/** Writes `src/client/generated`. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { source } from "./source.ts"

for (const [name, text] of Object.entries(source())) {
  writeFileSync(join(import.meta.dirname, "../../src/client/generated", name), text)
}
