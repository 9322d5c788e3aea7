/** The metrics in the text format of Prometheus, of one process or of several together. */
import { Context, Effect, Metric } from "effect"
import { PrometheusMetrics } from "effect/observability"

/** The content type of the text. */
export const contentType = "text/plain; version=0.0.4; charset=utf-8"

/** The metrics of the registry around. */
export const text: Effect.Effect<string> = Effect.map(Metric.MetricRegistry, (registry) =>
  PrometheusMetrics.formatUnsafe(Context.make(Metric.MetricRegistry, registry))
)

/** The text of a process, and what it is called. */
export interface Part {
  readonly process: string
  readonly text: string
}

/** A metric: its comments, and its samples in all processes. */
interface Family {
  readonly comments: ReadonlyArray<string>
  readonly samples: Array<string>
}

const comment = /^# (?:HELP|TYPE) (\S+)/

/** A sample with the label `process` before its other labels. */
const labelled = (sample: string, process: string) => {
  const end = sample.search(/[{ ]/)
  const rest = sample.startsWith("{", end) ? `,${sample.slice(end + 1)}` : `}${sample.slice(end)}`
  return `${sample.slice(0, end)}{process="${process}"${rest}`
}

/** The metrics of several processes, told apart by the label `process`. Each metric is described once. */
export const merged = (parts: ReadonlyArray<Part>): string => {
  const families = new Map<string, Family>()
  for (const { process, text: given } of parts) {
    let name = ""
    let comments: Array<string> = []
    let family: Family = { comments: [], samples: [] }
    for (const line of given.split("\n")) {
      const described = comment.exec(line)?.[1]
      if (described !== undefined) {
        if (described !== name) {
          name = described
          comments = []
          family = families.get(name) ?? { comments, samples: [] }
          families.set(name, family)
        }
        comments.push(line)
      } else if (line !== "") family.samples.push(labelled(line, process))
    }
  }
  return (
    Array.from(families.values(), ({ comments, samples }) => [...comments, ...samples].join("\n")).join("\n") + "\n"
  )
}
