/** The started program on a Postgres. */
import { layer } from "@effect/vitest"
import { anyRequest } from "./anyRequest.ts"
import { everyRule } from "./everyRule.ts"
import { options, Service } from "../../support/Service.ts"

layer(Service.layerPostgres, options)("The program on a Postgres", (it) => {
  everyRule(it)
  anyRequest(it)
})
