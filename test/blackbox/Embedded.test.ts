/** The started program on its embedded database. */
import { layer } from "@effect/vitest"
import { everyRule } from "./rules/everyRule.ts"
import { options, Service } from "./support/Service.ts"

layer(Service.layerEmbedded, options)("The program on the embedded database", everyRule)
