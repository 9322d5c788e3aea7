/**
 * The started program on its embedded database: the same Postgres by the same client, so what can differ is enough.
 *
 * @module-tag long
 */
import { layer } from "@effect/vitest"
import { filters } from "./filters.ts"
import { isolation } from "./isolation.ts"
import { metricsRule } from "./metrics.ts"
import { options, Service } from "../../support/Service.ts"

layer(Service.layerEmbedded, options)("The program on the embedded database", (it) => {
  filters(it)
  isolation(it)
  metricsRule(it)
})
