/**
 * The contract of the data API. Nothing in this folder imports what serves it: the typed client and the OpenAPI
 * document come from here alone.
 */
import { Array, Record } from "effect"
import { HttpApi } from "effect/http-api"
import { JsonBody } from "./JsonBody.ts"
import { dataApiDocumentation } from "./openapi/DataApi.ts"
import { Authorization } from "./Authorization.ts"
import { deletionTasks } from "./DeletionTasks.ts"
import { pspGroups } from "./Psp.ts"
import { resources } from "./records/index.ts"

/** The practice data API, version 3: read-only, every call a POST with a JSON body, relative to `/api/v3`. */
export class DataApi extends HttpApi.make("practice-data")
  .add(...Array.map(resources, ({ group }) => group), ...Record.values(pspGroups), deletionTasks)
  .middleware(JsonBody)
  .middleware(Authorization)
  .annotate(HttpApi.PayloadParseOptions, { errors: "all", onExcessProperty: "error" })
  .annotateMerge(dataApiDocumentation) {}
