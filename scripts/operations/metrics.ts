/** Writes the table of metrics in the operators' guide from the list of metrics. */
import { spawnSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Record } from "effect"
import { type Definition, metrics } from "../../src/observability/Metrics.ts"

const file = join(import.meta.dirname, "../../src/operations/README.md")
const place = /(<!-- metrics -->\n)([^]*?)(<!-- \/metrics -->)/

const labelOf = ([name, values]: [string, Definition["labels"][string]]) =>
  `\`${name}\`: ${"atMost" in values ? values.values : values.join(", ")}`

const rowOf = ([name, { help, kind, labels }]: [string, Definition]) =>
  [`\`${name}\``, kind, Record.toEntries(labels).map(labelOf).join("; "), help].map((cell) =>
    cell.replaceAll("|", "\\|")
  )

/** Each metric with its kind, its labels and its help, as a table. */
export const metricsTable = () => {
  const rows = Record.toEntries<string, Definition>(metrics).map(rowOf)
  return [["metric", "kind", "labels", "what it says"], ["---", "---", "---", "---"], ...rows]
    .map((cells) => `| ${cells.join(" | ")} |`)
    .join("\n")
}

/** The table that the file has now. */
export const written = () => place.exec(readFileSync(file, "utf8"))?.[2]?.trim()

if (import.meta.main) {
  const text = readFileSync(file, "utf8")
  writeFileSync(
    file,
    text.replace(place, (_, before: string, __, after: string) => `${before}\n${metricsTable()}\n\n${after}`)
  )
  spawnSync(join(import.meta.dirname, "../../node_modules/.bin/oxfmt"), [file], { stdio: "inherit" })
}
