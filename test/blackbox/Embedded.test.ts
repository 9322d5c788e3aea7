/**
 * The started program on its embedded database: every rule again, as on a Postgres.
 *
 * @module-tag long
 */
import { layer } from "@effect/vitest"
import { everyRule } from "./rules/everyRule.ts"
import { options, Service } from "./support/Service.ts"

layer(Service.layerEmbedded, options)("The program on the embedded database", everyRule)
