/** The metrics in the text format of Prometheus, of one process or of several together. */
import { PrometheusMetrics } from "effect/observability"

export const contentType = "text/plain; version=0.0.4; charset=utf-8"

/** The metrics of the current registry. */
export const text = PrometheusMetrics.format()

const comment = /^# (?:HELP|TYPE) (\S+)/

/** A sample with the label `process` before its other labels. */
const labelled = (sample: string, process: string) => {
  const end = sample.search(/[{ ]/)
  const rest = sample.startsWith("{", end) ? `,${sample.slice(end + 1)}` : `}${sample.slice(end)}`
  return `${sample.slice(0, end)}{process="${process}"${rest}`
}

/** The metrics of several processes, distinguished by the label `process`. Each metric is described once. */
export const merged = (parts: ReadonlyArray<Readonly<Record<"process" | "text", string>>>): string => {
  // The comments of each metric, and its samples in all processes.
  const families = new Map<string, Set<string>>()
  for (const { process, text: given } of parts) {
    let family = new Set<string>()
    for (const line of given.split("\n")) {
      const name = comment.exec(line)?.[1]
      if (name !== undefined) {
        family = families.get(name) ?? new Set()
        families.set(name, family.add(line))
      } else if (line !== "") family.add(labelled(line, process))
    }
  }
  return Array.from(families.values(), (lines) => [...lines, ""].join("\n")).join("")
}
