/** What is known of the process itself: its memory, its CPU time, how late its event loop is, and what runs in it. */
import { monitorEventLoopDelay } from "node:perf_hooks"
import { getHeapStatistics } from "node:v8"
import { Context, Effect, Layer } from "effect"
import { version } from "../process/Package.ts"
import * as Series from "./Series.ts"

/** How often the event loop is looked at, in milliseconds. */
const resolution = 20

/** A delay is seen for at least this long, and at most for twice as long. */
const seenFor = "15 seconds"

const monitor = Effect.acquireRelease(
  Effect.sync(() => {
    const histogram = monitorEventLoopDelay({ resolution })
    histogram.enable()
    return histogram
  }),
  (histogram) => Effect.sync(() => histogram.disable())
)

/** How late the event loop was at a quantile, in seconds. */
const watchEventLoop = Effect.gen(function* () {
  // Each is begun anew while the other one goes on.
  let [older, younger] = [yield* monitor, yield* monitor]
  yield* Effect.sync(() => {
    older.reset()
    ;[older, younger] = [younger, older]
  }).pipe(Effect.delay(seenFor), Effect.forever, Effect.forkScoped)
  return (quantile: number) => {
    const between = quantile === 1 ? older.max : older.percentile(quantile * 100)
    return Math.max(0, between / 1e9 - resolution / 1000)
  }
})

const memory = () => process.memoryUsage.rss()

export class ProcessRuntime extends Context.Service<
  ProcessRuntime,
  {
    /** Resident memory, in bytes. */
    readonly memory: () => number
    /** How late the event loop was at a quantile, in the last 15 to 30 seconds; in seconds. */
    readonly eventLoopDelay: (quantile: number) => number
  }
>()("practice-data/observability/ProcessRuntime") {
  /**
   * Of this process, in its metrics too.
   *
   * @param roles what the process does
   */
  static readonly layer = (roles: ReadonlyArray<string>) =>
    Layer.effect(
      ProcessRuntime,
      Effect.gen(function* () {
        const { gauge, read } = yield* Series.current
        const eventLoopDelay = yield* watchEventLoop

        yield* read("practice_data_event_loop_delay_seconds", () => eventLoopDelay(0.5), { at: "p50" })
        yield* read("practice_data_event_loop_delay_seconds", () => eventLoopDelay(0.99), { at: "p99" })
        yield* read("practice_data_event_loop_delay_seconds", () => eventLoopDelay(1), { at: "max" })
        yield* read("process_resident_memory_bytes", memory)
        yield* read("process_cpu_seconds_total", () => {
          const { system, user } = process.cpuUsage()
          return (system + user) / 1e6
        })
        yield* read("nodejs_heap_size_used_bytes", () => getHeapStatistics().used_heap_size)
        yield* read("nodejs_heap_size_total_bytes", () => getHeapStatistics().total_heap_size)
        yield* read("nodejs_heap_size_limit_bytes", () => getHeapStatistics().heap_size_limit)
        gauge("process_start_time_seconds").set(performance.timeOrigin / 1000)
        gauge("practice_data_build_info", {
          version,
          node: process.versions.node,
          roles: roles.join(",")
        }).set(1)
        return ProcessRuntime.of({ eventLoopDelay, memory })
      })
    )
}
