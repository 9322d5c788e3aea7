/** The tables in the documentation that are made from lists: the runbook of the alerts, and the metrics. */
import { Record } from "effect"
import { type Definition, metrics } from "../../src/observability/Metrics.ts"
import { alerts } from "./alerts.ts"
import { anchorOf } from "./rules.ts"

const cell = (text: string) => text.replaceAll("|", "\\|")

const table = (heads: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>) =>
  [heads, heads.map(() => "---"), ...rows].map((cells) => `| ${cells.map(cell).join(" | ")} |`).join("\n")

/** Each alert with what it means and what to do. */
export const runbook = () =>
  table(
    ["alert", "what it means", "what to do"],
    alerts.map((alert) => [
      `<a id="${anchorOf(alert)}"></a>\`${alert.name}\` (${alert.severity})`,
      alert.means,
      alert.act
    ])
  )

const labelOf = ([name, values]: [string, Definition["labels"][string]]) =>
  `\`${name}\`: ${"atMost" in values ? values.values : values.join(", ")}`

/** Each metric with its kind, its labels and what it says. */
export const metricsTable = () =>
  table(
    ["metric", "kind", "labels", "what it says"],
    Record.toEntries<string, Definition>(metrics).map(([name, { help, kind, labels, when }]) => [
      `\`${name}\``,
      kind,
      Record.toEntries(labels).map(labelOf).join("; "),
      when === undefined ? help : `${help} With ${when}.`
    ])
  )

/** A place in a file that is made: what stands between two comments. */
export interface Place {
  readonly file: string
  readonly name: string
  readonly text: () => string
}

export const places: ReadonlyArray<Place> = [
  { file: "README.md", name: "alerts", text: runbook },
  { file: "scripts/operations/README.md", name: "metrics", text: metricsTable }
]

const between = (name: string) => new RegExp(`(<!-- ${name} -->\n)([^]*?)(<!-- /${name} -->)`)

/** What stands there now; nothing if the file has no such place. */
export const read = (file: string, name: string) => between(name).exec(file)?.[2]?.trim()

/** The file with another text there. */
export const replaced = (file: string, name: string, text: string) =>
  file.replace(between(name), (_, before: string, __, after: string) => `${before}\n${text}\n\n${after}`)
