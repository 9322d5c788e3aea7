/** Alerts over series as Prometheus keeps them: pending until they have held for long enough, then firing. */
import { Result } from "effect"
import type { Alert } from "../../../scripts/operations/Alert.ts"
import type { Vector } from "./Evaluate.ts"
import * as Evaluate from "./Evaluate.ts"
import { type Expression, parse, type QueryError } from "./Query.ts"
import { keyOf, type Labels, type Series } from "./Series.ts"

/** An alert that holds for some labels. */
export interface Active {
  readonly name: string
  /** Those of the result, without its name, and `severity`. */
  readonly labels: Labels
  readonly summary: string
  /** Since when it has held, in seconds. */
  readonly since: number
  readonly isFiring: boolean
}

// Four significant digits.
const short = (value: number) => String(Number(value.toPrecision(4)))

const prefixed = (value: number) => {
  const prefixes = ["", "k", "M", "G", "T"]
  let scaled = value
  let index = 0
  while (Math.abs(scaled) >= 1000 && index < prefixes.length - 1) {
    scaled /= 1000
    index += 1
  }
  return `${short(scaled)}${prefixes[index] ?? ""}`
}

const durationOf = (value: number) => {
  if (Math.abs(value) < 1) return value === 0 ? "0s" : `${short(value * 1000)}ms`
  const whole = Math.trunc(value)
  const [days, hours, minutes] = [
    Math.trunc(whole / 86_400),
    Math.trunc(whole / 3600) % 24,
    Math.trunc(whole / 60) % 60
  ]
  if (days > 0) return `${days}d ${hours}h ${minutes}m ${whole % 60}s`
  if (hours > 0) return `${hours}h ${minutes}m ${whole % 60}s`
  return minutes > 0 ? `${minutes}m ${whole % 60}s` : `${short(value)}s`
}

const formats: Readonly<Record<string, (value: number) => string>> = {
  humanize: prefixed,
  humanizeDuration: durationOf,
  "printf `%.0f`": (value) => value.toFixed(0),
  humanizePercentage: (value) => `${short(value * 100)}%`
}

/** Fills a text with labels and the value, as far as our texts use templates; the rest stays as it is. */
export const rendered = (template: string, labels: Labels, value: number) =>
  template.replaceAll(
    /\{\{ (\$labels\.(\w+)|\$value)(?: \| ([^}]+))? \}\}/g,
    (whole, _, label?: string, format?: string) =>
      label !== undefined
        ? (labels[label] ?? "")
        : format === undefined
          ? String(value)
          : (formats[format]?.(value) ?? whole)
  )

interface Prepared {
  readonly alert: Alert
  readonly expression: Expression
  readonly since: Map<string, number>
}

const without = (labels: Labels) => Object.fromEntries(Object.entries(labels).filter(([name]) => name !== "__name__"))

/** The state of alerts from one evaluation to the next. */
export const make = (alerts: ReadonlyArray<Alert>) =>
  Result.map(
    Result.all(
      alerts.map((alert) =>
        Result.map(parse(alert.expression), (expression): Prepared => ({ alert, expression, since: new Map() }))
      )
    ),
    (prepared) => {
      const advance = ({ alert, since }: Prepared, vector: Vector, at: number): ReadonlyArray<Active> => {
        const keys = new Set(vector.map(({ labels }) => keyOf(labels)))
        for (const key of since.keys()) if (!keys.has(key)) since.delete(key)
        return vector.map(({ labels, value }) => {
          const key = keyOf(labels)
          const begun = since.get(key) ?? at
          since.set(key, begun)
          return {
            name: alert.name,
            labels: { ...without(labels), severity: alert.severity },
            summary: rendered(alert.summary, labels, value),
            since: begun,
            isFiring: at - begun >= alert.for
          }
        })
      }
      /** What is active at a time, which is later than the one before. */
      return (series: ReadonlyArray<Series>, at: number): Result.Result<ReadonlyArray<Active>, QueryError> => {
        const evaluate = Evaluate.make(series)
        return Result.map(
          Result.all(
            prepared.map((rule) => Result.map(evaluate(rule.expression, at), (vector) => advance(rule, vector, at)))
          ),
          (active) => active.flat()
        )
      }
    }
  )
