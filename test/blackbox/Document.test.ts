/** Holds the OpenAPI document that the program serves against the contract. */
import { Effect } from "effect"
import { documentSuite } from "../contract/documentSuite.ts"
import * as Client from "./support/Client.ts"
import * as Process from "./support/Process.ts"

const served = Effect.gen(function* () {
  const { address } = yield* Process.start({ DATABASE_URL: "postgres://nobody@127.0.0.1:1/nothing" })
  const { call } = yield* Client.make(yield* address)
  const { text } = yield* call({ path: "/api/v3/openapi.json", method: "GET", headers: {} })
  return yield* Client.parse(text)
}).pipe(Effect.scoped)

documentSuite("The OpenAPI document that is served without a key at /api/v3/openapi.json", served)
