/** The endpoints of health and readiness. */
import { Effect, Predicate, Record } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { OperationsApi } from "../api/OperationsApi.ts"
import { version } from "../process/Package.ts"
import { HealthChecks } from "./HealthChecks.ts"

export const layer = HttpApiBuilder.group(
  OperationsApi,
  "health",
  Effect.fnUntraced(function* (handlers) {
    const health = yield* HealthChecks
    return handlers.handleAll({
      health: () =>
        Effect.map(health.checks, (found) => {
          const checks = Record.map(found, (problem) => {
            if (problem === undefined) return { status: "pass" } as const
            return Predicate.isString(problem)
              ? ({ status: "warn", output: problem } as const)
              : ({ status: "pass", output: problem.note } as const)
          })
          const isFine = !Object.values(found).some(Predicate.isString)
          const status = isFine ? ("pass" as const) : ("warn" as const)
          return { status, version, checks }
        }),
      ready: () =>
        Effect.map(health.isReady, (ready) => HttpServerResponse.jsonUnsafe({ ready }, { status: ready ? 200 : 503 }))
    })
  })
)
