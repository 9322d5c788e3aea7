/** The program as most tests need it: running over the demo data, on the embedded database or on a Postgres. */
import type { Vitest } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { accounts } from "../../../src/Demo/DemoProcessor.ts"
import { loadDemoData } from "../../../src/Demo/Load.ts"
import { StripeDouble } from "../../support/StripeDouble.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import * as Client from "./Client.ts"
import * as Process from "./Process.ts"

const secretKey = "sk_test_of_the_double"

const make = (environment: Process.Environment) =>
  Effect.gen(function* () {
    const process = yield* Process.start(environment)
    const client = yield* Client.make(yield* process.address)
    return { ...client, process }
  })

/** The program, and a client of it. */
export class Service extends Context.Service<Service, Effect.Success<ReturnType<typeof make>>>()(
  "practice-data/test/blackbox/support/Service"
) {
  /** On the embedded database, in a folder of its own. */
  static readonly layerEmbedded = Layer.effect(
    Service,
    Effect.flatMap(Process.temporaryFolder, (folder) => make({ DATA_DIR: folder }))
  )

  /** On a Postgres that has the demo data, and a double of the processor that has the demo processor's objects. */
  static readonly layerPostgres = Layer.effect(
    Service,
    Effect.gen(function* () {
      const { url, sql } = yield* TestDatabase
      yield* loadDemoData(sql)
      const stripe = yield* StripeDouble
      return yield* make({
        DATABASE_URL: url,
        DATABASE_POOL_SIZE: "8",
        STRIPE_SECRET_KEY: secretKey,
        STRIPE_API_URL: stripe.url.href
      })
    })
  ).pipe(
    Layer.provide([TestDatabase.layer, StripeDouble.layer({ key: secretKey, accounts, platform: "acct_platform" })])
  )
}

/** How a layer of the running program is shared by tests: real time, and time to start. */
export const options = { excludeTestServices: true, timeout: "60 seconds" } as const

/** The methods of tests that share a running program. */
export type Tests = Vitest.MethodsNonLive<Service>
