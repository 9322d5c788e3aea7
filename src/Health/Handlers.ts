/** Answers health and readiness. */
import { Effect, Record } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import packageJson from "../../package.json" with { type: "json" }
import { OperationsApi } from "../Api.ts"
import { HealthChecks } from "./HealthChecks.ts"

export const layer = HttpApiBuilder.group(
  OperationsApi,
  "health",
  Effect.fnUntraced(function* (handlers) {
    const health = yield* HealthChecks
    return handlers.handleAll({
      health: () =>
        Effect.map(health.checks, (found) => {
          const checks = Record.map(found, (isUp) =>
            isUp ? ({ status: "pass" } as const) : ({ status: "warn", output: "Cannot be reached" } as const)
          )
          const status = Object.values(found).every((isUp) => isUp) ? ("pass" as const) : ("warn" as const)
          return { status, version: packageJson.version, checks }
        }),
      ready: () =>
        Effect.map(health.isReady, (ready) => HttpServerResponse.jsonUnsafe({ ready }, { status: ready ? 200 : 503 }))
    })
  })
)
