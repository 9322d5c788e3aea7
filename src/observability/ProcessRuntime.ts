/** The process itself: its memory, its CPU time, the delay of its event loop, and its build. */
import { monitorEventLoopDelay } from "node:perf_hooks"
import { getHeapStatistics } from "node:v8"
import { Effect, Layer } from "effect"
import * as Loop from "./Loop.ts"
import { ownMemory, version } from "../process/Package.ts"
import * as Series from "./Series.ts"

/** The interval at which the event loop is measured, in milliseconds: an idle process spends 0.4 ms of CPU a second on it. */
const resolution = 100

const monitor = Effect.acquireRelease(
  Effect.sync(() => monitorEventLoopDelay({ resolution })),
  (histogram) => Effect.sync(() => histogram.disable())
).pipe(Effect.tap((histogram) => Effect.sync(() => histogram.enable())))

/** The delay of the event loop at a quantile, in seconds. */
const watchEventLoop = Effect.gen(function* () {
  // One is reset while the other one continues: a delay is shown for 15 to 30 seconds.
  let [older, younger] = [yield* monitor, yield* monitor]
  const swap = Effect.sync(() => {
    older.reset()
    ;[older, younger] = [younger, older]
  })
  yield* Effect.forkScoped(Loop.forever("The delays of the event loop", Effect.delay(swap, "15 seconds")))
  return (quantile: number) => {
    const delay = older.percentile(quantile * 100)
    return Math.max(0, delay / 1e9 - resolution / 1000)
  }
})

/** Measures this process until the scope closes. */
export const layer = (roles: ReadonlyArray<string>) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { gauge, read } = yield* Series.current
      const delayAt = yield* watchEventLoop
      yield* read("practice_data_event_loop_delay_seconds", () => delayAt(0.5), { at: "p50" })
      yield* read("practice_data_event_loop_delay_seconds", () => delayAt(0.99), { at: "p99" })
      yield* read("practice_data_event_loop_delay_seconds", () => delayAt(1), { at: "max" })
      yield* read("process_resident_memory_bytes", () => process.memoryUsage.rss())
      yield* read("process_cpu_seconds_total", () => {
        const { system, user } = process.cpuUsage()
        return (system + user) / 1e6
      })
      yield* read("nodejs_heap_size_used_bytes", () => getHeapStatistics().used_heap_size)
      yield* read("nodejs_heap_size_total_bytes", () => getHeapStatistics().total_heap_size)
      yield* read("nodejs_heap_size_limit_bytes", () => getHeapStatistics().heap_size_limit)
      gauge("process_memory_limit_bytes").set(ownMemory())
      gauge("process_start_time_seconds").set(performance.timeOrigin / 1000)
      gauge("practice_data_build_info", { version, node: process.versions.node, roles: roles.join(",") }).set(1)
    })
  )
