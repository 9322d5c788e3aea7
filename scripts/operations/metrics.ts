/** The table of metrics in the operators' guide, from the list of metrics. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Record } from "effect"
import { type Definition, metrics } from "../../src/observability/Metrics.ts"
import { tableOf } from "../markdown.ts"

const text = readFileSync(join(import.meta.dirname, "../../src/operations/README.md"), "utf8")
const place = /(?<=<!-- metrics -->\n)[^]*?(?=<!-- \/metrics -->)/

const labelOf = ([name, values]: [string, Definition["labels"][string]]) =>
  `\`${name}\`: ${"atMost" in values ? values.values : values.join(", ")}`

const rowOf = ([name, { help, kind, labels }]: [string, Definition]) => [
  `\`${name}\``,
  kind,
  Record.toEntries(labels).map(labelOf).join("; "),
  help
]

/** Each metric with its kind, its labels and its help, as a table. */
export const metricsTable = () =>
  tableOf(["metric", "kind", "labels", "what it says"], ...Record.toEntries<string, Definition>(metrics).map(rowOf))

/** The table that the file has now. */
export const written = () => place.exec(text)?.[0].trim()

/** The file with the table as it should be. */
export const guide = () => text.replace(place, () => `\n${metricsTable()}\n\n`)
