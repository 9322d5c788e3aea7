/** Generated requests to the started program. */
import { layer } from "@effect/vitest"
import { anyRequest } from "./rules/anyRequest.ts"
import { options, Service } from "./support/Service.ts"

layer(Service.layerEmbedded, options)("The program on the embedded database", anyRequest)

layer(Service.layerPostgres, options)("The program on a Postgres", anyRequest)
