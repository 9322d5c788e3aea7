/** The process itself: its memory, its CPU time, and its build. */
import { getHeapStatistics } from "node:v8"
import { Effect, Layer } from "effect"
import { ownMemory, version } from "../process/Package.ts"
import * as Series from "./Series.ts"

/** Measures this process until the scope closes. */
export const layer = (roles: ReadonlyArray<string>) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { gauge, read } = yield* Series.current
      yield* read("process_resident_memory_bytes", () => process.memoryUsage.rss())
      yield* read("process_cpu_seconds_total", () => {
        const { system, user } = process.cpuUsage()
        return (system + user) / 1e6
      })
      yield* read("nodejs_heap_size_used_bytes", () => getHeapStatistics().used_heap_size)
      yield* read("nodejs_heap_size_limit_bytes", () => getHeapStatistics().heap_size_limit)
      gauge("process_memory_limit_bytes").set(ownMemory())
      gauge("practice_data_build_info", { version, node: process.versions.node, roles: roles.join(",") }).set(1)
    })
  )
