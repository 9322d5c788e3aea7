/** `openapi`. */
import { Argument, Command } from "effect/cli"
import { OpenApi } from "effect/http-api"
import { DataApi } from "../api/DataApi.ts"
import { VersionOneApi } from "../api/IntakeApi.ts"
import * as Output from "./Output.ts"
import { documented } from "./Usage.ts"

/** Prints an OpenAPI document, as the service does at `/api/v3/openapi.json` and `/api/v1/openapi.json`. */
export const openapi = Command.make(
  "openapi",
  {
    version: Argument.Literals("version", ["v3", "v1"]).pipe(
      Argument.withDescription("v3: the data API, the default. v1: the intake and health"),
      Argument.withDefault("v3")
    )
  },
  ({ version }) => Output.document(version === "v3" ? OpenApi.fromApi(DataApi) : OpenApi.fromApi(VersionOneApi))
).pipe(documented("Print the OpenAPI 3.1 document of an API", [["practice-data openapi v3 > openapi.json"]]))
