/** A real Prometheus with our rules, on targets that come and go. */
import { renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import * as Process from "../../../test/blackbox/support/Process.ts"
import * as Prometheus from "../../../test/support/Prometheus.ts"
import { job, scrapeInterval } from "../../operations/Alert.ts"
import { files } from "../../operations/made.ts"
import { tried } from "./Fault.ts"
import type { Watcher } from "./Watcher.ts"

const configuration = `
global:
  scrape_interval: ${scrapeInterval}s
  scrape_timeout: 2s
rule_files: [alerts.yaml]
scrape_configs:
  - job_name: ${job}
    file_sd_configs:
      - files: [targets.json]
        refresh_interval: 1s
`

const Alerts = Schema.Struct({
  alerts: Schema.Array(
    Schema.Struct({
      state: Schema.String,
      labels: Schema.Record(Schema.String, Schema.String),
      annotations: Schema.Record(Schema.String, Schema.String)
    })
  )
})

const encode = Schema.encodeUnknownEffect(Schema.fromJsonString(Schema.Unknown))

/** Starts it. It is gone when the scope closes. */
export const make = Effect.gen(function* () {
  const folder = yield* Process.temporaryFolder
  const targets = new Map<string, ReadonlyArray<string>>()
  const write = Effect.gen(function* () {
    const text = yield* encode([...targets].map(([fault, ports]) => ({ targets: ports, labels: { fault } })))
    yield* Effect.sync(() => {
      const path = join(folder, "targets.json")
      writeFileSync(`${path}.new`, text)
      renameSync(`${path}.new`, path)
    })
  })
  yield* Effect.sync(() => {
    writeFileSync(join(folder, "prometheus.yaml"), configuration)
    writeFileSync(join(folder, "alerts.yaml"), files()["alerts.yaml"])
  })
  yield* write
  const { ask } = yield* Prometheus.start(folder)
  const watcher: Watcher = {
    name: "Prometheus",
    watch: (fault, ports) =>
      Effect.acquireRelease(
        tried(
          Effect.suspend(() => {
            targets.set(fault, ports)
            return write
          })
        ),
        () =>
          Effect.suspend(() => {
            targets.delete(fault)
            return Effect.ignore(write)
          })
      ),
    firing: (fault) =>
      tried(ask(Alerts, "/api/v1/alerts")).pipe(
        Effect.map(({ alerts }) =>
          alerts
            .filter(({ labels, state }) => state === "firing" && labels["fault"] === fault)
            .map(({ annotations, labels }) => ({
              name: labels["alertname"] ?? "",
              summary: annotations["summary"] ?? ""
            }))
        )
      )
  }
  return watcher
})
