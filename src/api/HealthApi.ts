/** The contract of the health and the readiness of the service. */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { annotations } from "./openapi/Document.ts"

const Check = Schema.Struct({
  status: Schema.Literals(["pass", "warn"]),
  output: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "HealthCheck", description: "The state of a dependency of the service." })

export const Health = Schema.Struct({
  status: Schema.Literals(["pass", "warn"]).annotate({ description: "`warn` if a check does not pass." }),
  version: Schema.String.annotate({ description: "Version of the service." }),
  checks: Schema.Record(Schema.String, Check).annotate({ description: "The dependencies of the service, by name." })
}).annotate({ identifier: "Health" })
export type Health = typeof Health.Type

export const Readiness = Schema.Struct({ ready: Schema.Boolean }).annotate({ identifier: "Readiness" })

class HealthApi extends HttpApiGroup.make("health")
  .annotateMerge(OpenApi.annotations({ description: "The health and the readiness of the service." }))
  .add(
    HttpApiEndpoint.get("health", "/health", { success: Health }).annotateMerge(
      annotations({
        operation: ["health", "check"],
        summary: "Health",
        description:
          "200 within half a second while the process serves requests. `warn` if a check does not pass; its `output` is the reason.",
        statuses: {
          200: {
            description: "The process serves requests.",
            example: {
              status: "warn",
              version: "0.1.0",
              checks: { processor: { status: "warn", output: "Cannot be reached" } }
            }
          }
        }
      })
    ),
    HttpApiEndpoint.get("ready", "/health/ready", {
      success: [Readiness, Readiness.pipe(HttpApiSchema.status(503))]
    }).annotateMerge(
      annotations({
        operation: ["health", "ready"],
        summary: "Readiness",
        description:
          "200 if the process accepts requests. 503 until its databases are migrated and grant it access, and during shutdown.",
        statuses: {
          200: { description: "Send requests here.", example: { ready: true } },
          503: { description: "Send no requests here.", example: { ready: false } }
        }
      })
    )
  ) {}

/** The endpoints of every process, whatever its roles, relative to `/api/v1`. */
export class OperationsApi extends HttpApi.make("operations").add(HealthApi) {}
