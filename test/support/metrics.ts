/** Reads metrics as Prometheus would. */
import { Effect, Metric } from "effect"
import { PrometheusMetrics } from "effect/observability"

/** Runs with a registry of its own. */
export const withRegistry = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => Effect.provideService(effect, Metric.MetricRegistry, new Map()))

/** The samples of a text: the value of each name with its labels, as it is written there. */
export const samplesOf = (text: string): Readonly<Record<string, number>> =>
  Object.fromEntries([...text.matchAll(/^([^#\n].*) (\S+)$/gm)].map(([, name = "", value]) => [name, Number(value)]))

/** The samples of the registry around. */
export const samples = Effect.map(PrometheusMetrics.format(), samplesOf)
