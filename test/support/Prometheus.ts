/** Prometheus and promtool, where the machine has them: `apt-get install prometheus`, `brew install prometheus`. */
import { spawn, spawnSync } from "node:child_process"
import { Data, Effect, Schedule, Schema } from "effect"
import { FetchHttpClient, HttpClient, HttpClientResponse } from "effect/http"
import { freePort } from "./LocalPostgres.ts"

/** Prometheus does not start, or does not answer. */
export class PrometheusError extends Data.TaggedError("PrometheusError")<{ readonly message: string }> {}

const runs = (program: string) => spawnSync(program, ["--version"], { stdio: "ignore" }).status === 0

/** Whether both are there. */
export const isInstalled = runs("prometheus") && runs("promtool")

/** Of a test that needs them, its name: with why it is skipped, where it is. */
export const named = (name: string) => (isInstalled ? name : `${name} (skipped: there is no prometheus here)`)

/** Asks one for JSON. */
const get = <A>(schema: Schema.ConstraintDecoder<A>, url: URL) =>
  HttpClient.get(url).pipe(
    Effect.flatMap(HttpClientResponse.filterStatusOk),
    Effect.flatMap(({ json }) => json),
    Effect.flatMap(Schema.decodeUnknownEffect(Schema.Struct({ data: schema }))),
    Effect.mapBoth({
      onSuccess: ({ data }) => data,
      onFailure: (error) => new PrometheusError({ message: `${url.href}: ${error.message}` })
    }),
    Effect.provide(FetchHttpClient.layer)
  )

/** Starts one on a folder that has its `prometheus.yaml`, and waits until it is ready. It is gone when the scope closes. */
export const start = Effect.fnUntraced(function* (folder: string, flags: ReadonlyArray<string> = []) {
  const port = yield* freePort
  const output: Array<string> = []
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(
        "prometheus",
        [
          "--config.file=prometheus.yaml",
          "--storage.tsdb.path=data",
          "--log.level=warn",
          `--web.listen-address=127.0.0.1:${port}`,
          ...flags
        ],
        { cwd: folder, stdio: ["ignore", "pipe", "pipe"] }
      )
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding("utf8").on("data", (text: string) => output.push(text))
      }
      return child
    }),
    (child) =>
      Effect.callback<void>((resume) => {
        if (child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
        child.once("exit", () => resume(Effect.void))
        child.kill("SIGKILL")
      })
  )
  const base = new URL(`http://127.0.0.1:${port}`)
  yield* HttpClient.get(new URL("/-/ready", base)).pipe(
    Effect.flatMap(HttpClientResponse.filterStatusOk),
    Effect.retry({ schedule: Schedule.spaced("50 millis"), times: 400 }),
    Effect.provide(FetchHttpClient.layer),
    Effect.mapError(() => new PrometheusError({ message: `It does not start: ${output.join("")}` }))
  )
  return {
    /** Asks an address of its API. */
    ask: <A>(schema: Schema.ConstraintDecoder<A>, path: string, query: Readonly<Record<string, string>> = {}) =>
      get(schema, Object.assign(new URL(path, base), { search: new URLSearchParams(query).toString() }))
  }
})
