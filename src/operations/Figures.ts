/** Figures of this process: its metrics, its recent requests, and the state of its dependencies over time. */
import { Context, Effect, Layer, Metric } from "effect"
import { PrometheusMetrics } from "effect/observability"
import * as Recent from "../observability/Recent.ts"
import { version } from "../process/Package.ts"
import * as Time from "../process/Time.ts"
import { HealthChecks } from "./HealthChecks.ts"

const snapshot = Effect.fnUntraced(function* (roles: ReadonlyArray<string>, metrics: Effect.Effect<string>) {
  const [health, recent] = [yield* HealthChecks, yield* Recent.Recent]
  const now = yield* Effect.all(
    { metrics, recent: recent.lastHour, ready: health.isReady, checks: health.checks },
    { concurrency: "unbounded" }
  )
  return {
    ...now,
    pid: process.pid,
    /** In milliseconds since 1970. */
    startedAt: Math.round(performance.timeOrigin),
    version,
    roles
  }
})

/** The figures of a moment. */
export type Snapshot = Effect.Success<ReturnType<typeof snapshot>>

/** Adds since when each dependency is in its state. */
const watching = (all: Effect.Effect<Snapshot>) => {
  const states = new Map<string, { readonly status: string; readonly since: number }>()
  const sinceOf = (name: string, status: string, now: number) => {
    const known = states.get(name)
    if (known?.status === status) return known.since
    states.set(name, { status, since: now })
    return now
  }
  return Effect.gen(function* () {
    const figures = yield* all
    const [now, wall] = [yield* Time.monotonic, yield* Time.wall]
    const dependencies = Object.entries(figures.checks).map(([name, check]) => ({
      name,
      ...check,
      /** The start of its current state, or of watching, in milliseconds since 1970. */
      since: Math.round(wall - (now - sinceOf(name, check.status, now)))
    }))
    return { ...figures, dependencies }
  })
}

export type Watched = Effect.Success<ReturnType<typeof watching>>

export class Figures extends Context.Service<
  Figures,
  {
    /** The figures and the dependencies, at most a second old. */
    readonly watched: Effect.Effect<Watched>
    /** The metrics, in the text format of Prometheus. */
    readonly metrics: Effect.Effect<string>
  }
>()("practice-data/operations/Figures") {
  static readonly make = (all: Effect.Effect<Snapshot>, metrics: Effect.Effect<string>) =>
    Effect.map(
      Time.cachedFor(watching(all), () => "1 second"),
      (watched) => Figures.of({ watched, metrics })
    )

  static readonly layer = (roles: ReadonlyArray<string>) =>
    Layer.effect(
      Figures,
      Effect.gen(function* () {
        const registry = yield* Metric.MetricRegistry
        const metrics = Effect.provideService(PrometheusMetrics.format(), Metric.MetricRegistry, registry)
        const services = yield* Effect.context<HealthChecks | Recent.Recent>()
        return yield* Figures.make(Effect.provideContext(snapshot(roles, metrics), services), metrics)
      })
    )
}

/** The highest value of a metric; undefined without one. */
export const highest = ({ metrics }: Snapshot, name: string): number | undefined => {
  const values = metrics
    .split("\n")
    .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
    .map((line) => Number(line.slice(line.lastIndexOf(" ") + 1).replace("Inf", "Infinity")))
  return values.length === 0 ? undefined : Math.max(...values)
}
