/** The health of the service. */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { annotations } from "./openapi/Endpoint.ts"

const Check = Schema.Struct({
  status: Schema.Literals(["pass", "warn"]),
  output: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "HealthCheck", description: "The state of a dependency of the service." })

export const Health = Schema.Struct({
  status: Schema.Literals(["pass", "warn"]).annotate({ description: "`warn` when a check does not pass." }),
  version: Schema.String.annotate({ description: "Version of the service." }),
  checks: Schema.Record(Schema.String, Check).annotate({ description: "The dependencies of the service, by name." })
}).annotate({ identifier: "Health" })
export type Health = typeof Health.Type

export const Readiness = Schema.Struct({ ready: Schema.Boolean }).annotate({ identifier: "Readiness" })

const provisional = (verb: string, summary: string, description: string) =>
  annotations({ operation: ["health", verb], stability: "provisional", summary, description })

export class HealthApi extends HttpApiGroup.make("health")
  .annotateMerge(OpenApi.annotations({ description: "The health and the readiness of the service." }))
  .add(
    HttpApiEndpoint.get("health", "/health", { success: Health }).annotateMerge(
      provisional(
        "check",
        "Health",
        "200 as long as the process serves, within half a second. `warn` where a check does not pass; its `output` is the reason."
      )
    ),
    HttpApiEndpoint.get("ready", "/health/ready", {
      success: [Readiness, Readiness.pipe(HttpApiSchema.status(503))]
    }).annotateMerge(
      provisional(
        "ready",
        "Readiness",
        "200 if requests may be sent here; 503 until the database is migrated, and while the service stops."
      )
    )
  ) {}

/** The endpoints that every process serves beside its roles, relative to `/api/v1`. */
export class OperationsApi extends HttpApi.make("operations").add(HealthApi) {}
