/** `openapi`. */
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { OpenApi } from "effect/http-api"
import { DataApi } from "../api/DataApi.ts"
import { VersionOneApi } from "../api/IntakeApi.ts"
import { invocation } from "../process/Package.ts"
import * as Output from "./Output.ts"

const apis = { v3: DataApi, v1: VersionOneApi } as const

/** Prints an OpenAPI document, as the service does at `/api/v3/openapi.json` and `/api/v1/openapi.json`. */
export const openapi = Command.make(
  "openapi",
  {
    version: Argument.Literals("version", ["v3", "v1"]).pipe(
      Argument.withDescription("v3: the data API, the default. v1: the intake and health"),
      Argument.withDefault("v3")
    )
  },
  Effect.fn(function* ({ version }) {
    const document = version === "v3" ? OpenApi.fromApi(apis.v3) : OpenApi.fromApi(apis.v1)
    yield* Output.document(document)
  })
).pipe(
  Command.withDescription("Print the OpenAPI 3.1 document of an API"),
  Command.withExamples([
    { command: `${invocation("openapi v3").replace("npm run", "npm run --silent")} > openapi.json` }
  ])
)
