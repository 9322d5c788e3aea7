/** Writes `src/client/generated.ts`. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { source } from "./source.ts"

writeFileSync(join(import.meta.dirname, "../../src/client/generated.ts"), source())
