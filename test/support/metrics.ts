/** Reads metrics as Prometheus would. */
import { Effect, Metric } from "effect"
import { PrometheusMetrics } from "effect/observability"

/** Runs with a registry of its own. */
export const withRegistry = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => Effect.provideService(effect, Metric.MetricRegistry, new Map()))

/** The samples of a text: the value of each name with its labels, as it is written there. */
export const samplesOf = (text: string): Readonly<Record<string, number>> =>
  Object.fromEntries(
    text
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => {
        const end = line.lastIndexOf(" ")
        return [line.slice(0, end), Number(line.slice(end + 1))]
      })
  )

/** The samples of the registry around. */
export const samples = Effect.map(PrometheusMetrics.format(), samplesOf)

/** The names that a text describes. */
export const namesOf = (text: string): ReadonlyArray<string> =>
  text.split("\n").flatMap((line) => /^# TYPE (\S+)/.exec(line)?.[1] ?? [])
