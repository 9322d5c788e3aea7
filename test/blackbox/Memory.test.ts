/** The started program on an embedded database that keeps nothing. */
import { layer } from "@effect/vitest"
import { anyRequest } from "./rules/anyRequest.ts"
import { metricsRule } from "./rules/metrics.ts"
import { options, Service } from "./support/Service.ts"

layer(Service.layerMemory, options)("The program in memory", (it) => {
  anyRequest(it)
  metricsRule(it)
})
