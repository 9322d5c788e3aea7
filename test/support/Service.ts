/** A program over the demo data that the tests of a file share. */
import { join } from "node:path"
import { Context, Effect, Layer } from "effect"
import { accounts } from "../../src/demo/DemoProcessor.ts"
import * as Client from "./Client.ts"
import type * as Process from "./Process.ts"
import * as Program from "./Program.ts"
import { StripeDouble } from "./StripeDouble.ts"
import { TestDatabase } from "./TestDatabase.ts"

const secretKey = "sk_test_of_the_double"

const make = (environment: Process.Environment) =>
  Effect.map(Program.start(environment), (process) => ({ ...Client.patient(process.client), process }))

/** The program, and a client of it. */
export class Service extends Context.Service<Service, Effect.Success<ReturnType<typeof make>>>()(
  "practice-data/test/support/Service"
) {
  /** On the embedded database. */
  static readonly layerEmbedded = Layer.effect(
    Service,
    Effect.flatMap(Program.usedFolder, (folder) => make({ DATA_DIR: join(folder, ".data") }))
  )

  /** On a Postgres with the demo data, and a double of Stripe with the demo processor's objects. */
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

/** Options of a layer that tests share: real time. */
export const options = { excludeTestServices: true } as const
