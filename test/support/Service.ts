/** The program as most tests need it: running over the demo data, on the embedded database or on a Postgres. */
import { join } from "node:path"
import type { Vitest } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { accounts } from "../../src/demo/DemoProcessor.ts"
import { StripeDouble } from "./StripeDouble.ts"
import { TestDatabase } from "./TestDatabase.ts"
import * as Client from "./Client.ts"
import * as Process from "./Process.ts"
import { usedFolder } from "./usedFolder.ts"

const secretKey = "sk_test_of_the_double"

const make = (environment: Process.Environment) =>
  Effect.gen(function* () {
    const process = yield* Process.start(environment)
    const client = Client.patient(yield* Client.make(yield* process.address))
    return { ...client, process }
  })

/** The program, and a client of it. */
export class Service extends Context.Service<Service, Effect.Success<ReturnType<typeof make>>>()(
  "practice-data/test/support/Service/Service"
) {
  /** On the embedded database, in a folder of its own that was used before. */
  static readonly layerEmbedded = Layer.effect(
    Service,
    Effect.flatMap(usedFolder, (folder) => make({ DATA_DIR: join(folder, ".data") }))
  )

  /** On a Postgres that has the demo data, and a double of the processor that has the demo processor's objects. */
  static readonly layerPostgres = Layer.effect(
    Service,
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const stripe = yield* StripeDouble
      return yield* make({
        DATABASE_URL: url,
        DATABASE_POOL_SIZE: "8",
        STRIPE_SECRET_KEY: secretKey,
        STRIPE_API_URL: stripe.url.href
      })
    })
  ).pipe(
    Layer.provide([TestDatabase.layerDemo, StripeDouble.layer({ key: secretKey, accounts, platform: "acct_platform" })])
  )
}

/** How a layer of the running program is shared by tests: real time, and time to start. */
export const options = { excludeTestServices: true, timeout: "3 minutes" } as const

/** The methods of tests that share a running program. */
export type Tests = Vitest.MethodsNonLive<Service>
