/** Thousands of generated requests to the started program, the same ones in every run. */
import { layer } from "@effect/vitest"
import { anyRequest } from "./rules/anyRequest.ts"
import { options, Service } from "./support/Service.ts"

layer(Service.layerEmbedded, options)("The program on the embedded database", (it) => anyRequest(it, 1))

layer(Service.layerPostgres, options)("The program on a Postgres", (it) => anyRequest(it, 2))
