/** Checks whether the service runs here, or could. */
import { createServer } from "node:net"
import { Effect, Predicate, Schema } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import type { Settings } from "../../app/Config.ts"
import { version } from "../../process/Package.ts"
import { fail, ok, type Said, warn } from "./Finding.ts"

const Health = Schema.Struct({
  version: Schema.String,
  checks: Schema.Record(
    Schema.String,
    Schema.Struct({ status: Schema.String, output: Schema.optionalKey(Schema.String) })
  )
})

const isAnyHost = (host: string) => host === "0.0.0.0" || host === "::"

const address = ({ host, port }: Settings) => {
  const reached = isAnyHost(host) ? "127.0.0.1" : host
  return `http://${reached.includes(":") ? `[${reached}]` : reached}:${port}`
}

const health = (settings: Settings) =>
  HttpClient.get(`${address(settings)}/api/v1/health`).pipe(
    Effect.flatMap(HttpClientResponse.filterStatusOk),
    Effect.flatMap(HttpClientResponse.schemaBodyJson(Health)),
    Effect.timeout("2 seconds")
  )

/** Why nobody can listen on the port; empty when somebody can. */
const obstacle = ({ host, port }: Settings) =>
  Effect.callback<string>((resume) => {
    const probe = createServer()
      .once("error", (error) =>
        resume(Effect.succeed(Predicate.hasProperty(error, "code") ? String(error.code) : error.message))
      )
      .listen(port, host, () => probe.close(() => resume(Effect.succeed(""))))
  })

/** The port, and what the service that listens there says of itself. */
export const check = Effect.fnUntraced(function* (
  settings: Settings
): Effect.fn.Return<ReadonlyArray<Said>, never, HttpClient.HttpClient> {
  if (settings.port === 0) return [ok("PORT=0: it takes a free port.")]
  const running = yield* Effect.option(health(settings))
  if (running._tag === "Some") {
    const found = running.value
    const sick = Object.entries(found.checks).filter(([, { status }]) => status !== "pass")
    return [
      ok(`It runs at ${address(settings)}, version ${found.version}.`),
      ...(found.version === version
        ? []
        : [
            warn(`It is version ${found.version}, and this is ${version}.`, "Restart it, or use its own command line.")
          ]),
      ...sick.map(([name, { output }]) =>
        warn(
          `Its health warns of ${name}: ${output ?? "no reason given"}.`,
          "See what is told of it here, and its log."
        )
      )
    ]
  }
  const reason = yield* obstacle(settings)
  if (reason === "") return [ok(`It does not run here, and port ${settings.port} is free.`)]
  const { host, port } = settings
  return reason === "EADDRINUSE"
    ? [
        warn(
          `Another program listens on port ${port}, or the service does and does not answer.`,
          "Choose another PORT."
        )
      ]
    : [fail(`Nobody can listen on ${host} port ${port} (${reason}).`, "Choose another HOST or PORT.")]
})
