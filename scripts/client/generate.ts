/** Writes `src/client/generated`, and the manifest of `src/connectors`. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { airbyte } from "./airbyte.ts"
import { source } from "./source.ts"

for (const [name, text] of Object.entries(source())) {
  writeFileSync(join(import.meta.dirname, "../../src/client/generated", name), text)
}
writeFileSync(join(import.meta.dirname, "../../src/connectors/airbyte.yaml"), airbyte())
