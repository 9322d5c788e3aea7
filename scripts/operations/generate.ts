/** Writes what is made from the lists of metrics and alerts: rules, dashboard, and tables in the documentation. */
import { spawnSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { files } from "./made.ts"
import { places, replaced } from "./tables.ts"

const root = join(import.meta.dirname, "../..")

for (const [name, text] of Object.entries(files())) writeFileSync(join(import.meta.dirname, name), text)
for (const { file, name, text } of places) {
  const path = join(root, file)
  writeFileSync(path, replaced(readFileSync(path, "utf8"), name, text()))
}
spawnSync(
  join(root, "node_modules/.bin/oxfmt"),
  places.map(({ file }) => join(root, file)),
  { stdio: "inherit" }
)
