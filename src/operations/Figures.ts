/** Figures of this process: its metrics, its recent requests, and the state of its dependencies. */
import { Context, Effect, Layer, Metric } from "effect"
import { PrometheusMetrics } from "effect/observability"
import * as Recent from "../observability/Recent.ts"
import { version } from "../process/Package.ts"
import * as Time from "../process/Time.ts"
import { HealthChecks } from "./HealthChecks.ts"

const snapshot = Effect.fnUntraced(function* (roles: ReadonlyArray<string>) {
  const [health, recent] = [yield* HealthChecks, yield* Recent.Recent]
  const now = yield* Effect.all(
    { recent: recent.lastHour, ready: health.isReady, checks: health.checks },
    { concurrency: "unbounded" }
  )
  return {
    ...now,
    pid: process.pid,
    /** In milliseconds since 1970. */
    startedAt: Math.round(performance.timeOrigin),
    /** In bytes. */
    memory: process.memoryUsage.rss(),
    version,
    roles
  }
})

/** The figures of a moment. */
export type Snapshot = Effect.Success<ReturnType<typeof snapshot>>

export class Figures extends Context.Service<
  Figures,
  {
    /** The figures, at most a second old. */
    readonly latest: Effect.Effect<Snapshot>
    /** The metrics, in the text format of Prometheus. */
    readonly metrics: Effect.Effect<string>
  }
>()("practice-data/operations/Figures") {
  static readonly layer = (roles: ReadonlyArray<string>) =>
    Layer.effect(
      Figures,
      Effect.gen(function* () {
        const registry = yield* Metric.MetricRegistry
        const services = yield* Effect.context<HealthChecks | Recent.Recent>()
        return Figures.of({
          latest: yield* Time.cachedFor(Effect.provideContext(snapshot(roles), services), () => "1 second"),
          metrics: Effect.provideService(PrometheusMetrics.format(), Metric.MetricRegistry, registry)
        })
      })
    )
}
