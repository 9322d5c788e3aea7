/**
 * From one machine to 100,000 organizations: what grows, which limit is reached first, and how many groups keep all of
 * them. Prints the tables of scripts/scale/README.md; with `--write`, puts them there.
 *
 *     node scripts/scale/simulate.ts [--write]
 */
import { spawnSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { replaced } from "../operations/tables.ts"
import { tables } from "./model/tables.ts"

const file = join(import.meta.dirname, "README.md")
const made = Object.entries(tables())

process.stdout.write(made.map(([name, table]) => `${name}\n\n${table}\n\n`).join(""))

if (process.argv.includes("--write")) {
  writeFileSync(
    file,
    made.reduce((text, [name, table]) => replaced(text, name, table), readFileSync(file, "utf8"))
  )
  spawnSync(join(import.meta.dirname, "../../node_modules/.bin/oxfmt"), [file], { stdio: "inherit" })
}
