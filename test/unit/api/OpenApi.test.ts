/** Holds the OpenAPI document that the sources make against the contract. */
import { Effect } from "effect"
import { OpenApi } from "effect/http-api"
import { DataApi } from "../../../src/api/DataApi.ts"
import { documentSuite } from "../../support/contract/documentSuite.ts"

documentSuite(
  "The OpenAPI document",
  Effect.sync(() => OpenApi.fromApi(DataApi))
)
