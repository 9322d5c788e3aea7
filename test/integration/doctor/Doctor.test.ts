/** The findings of the doctor about variables, databases that cannot be reached, and the processor. */
import { assert, describe, it as test, layer } from "@effect/vitest"
import { Effect } from "effect"
import { json } from "../../support/Client.ts"
import * as Stripe from "../../support/stripe.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { long } from "../../support/tries.ts"
import { examined, has } from "./examined.ts"

const secret = "s3cret-passw0rd"
const nowhere = `postgres://someone:${secret}@127.0.0.1:1/nothing`

const processor = "Payment processor"

type Expected = readonly [status: "ok" | "warn" | "fail", message: RegExp | string, area?: string]

const mistakes = { DELETION_DELAY: "soon", RATE_LIMIT: "0" }

const cases: ReadonlyArray<readonly [what: string, Readonly<Record<string, string>>, ReadonlyArray<Expected>]> = [
  [
    "variables that are wrong",
    { DATABASE_URL: nowhere, STRIPE_SECRET_KEY: secret, ...mistakes },
    [
      ["fail", "DELETION_DELAY: expected a duration"],
      ["fail", "RATE_LIMIT: expected an integer"]
    ]
  ],
  [
    "databases that cannot be reached, and the rest",
    { DATABASE_URL: nowhere, CREDENTIALS_DATABASE_URL: nowhere.replace("nothing", "keys") },
    [
      ["fail", "ECONNREFUSED", "DATABASE_URL"],
      ["fail", "ECONNREFUSED", "CREDENTIALS_DATABASE_URL"],
      ["warn", "It is not configured", processor]
    ]
  ],
  [
    "the folder of an embedded database",
    { DATA_DIR: "memory" },
    [["ok", "The service keeps it in DATA_DIR=memory", "Embedded database"]]
  ]
]

describe.concurrent("the doctor", () => {
  test.live.each(cases)("reports %s, without secrets", ([, environment, expected]) =>
    Effect.gen(function* () {
      const findings = yield* examined(environment)
      for (const [status, message, area] of expected) has(findings, status, message, area)
      assert.notInclude(json(findings), secret)
    })
  )

  test.live("does not look for a processor that no role needs", () =>
    Effect.map(examined({ DATABASE_URL: nowhere, ROLES: "intake,worker" }), (findings) =>
      assert.notInclude(json(findings), processor)
    )
  )
})

const key = "sk_test_of_the_double"
const double = Stripe.StripeDouble.layer(key)

describe("over a database,", long, () => {
  layer(TestDatabase.layerDemo, { excludeTestServices: true })("the doctor", (it) => {
    it.effect("tries the payment processor with an account that is connected", () =>
      Effect.gen(function* () {
        const { url, sql } = yield* TestDatabase
        const stripe = yield* Stripe.StripeDouble
        const environment = { DATABASE_URL: url, STRIPE_SECRET_KEY: key, STRIPE_API_URL: stripe.url.href }
        const fine = yield* examined(environment)
        has(fine, "ok", "It responds.", processor)
        const wrongKey = yield* examined({ ...environment, STRIPE_SECRET_KEY: "sk_live_wrong" })
        has(wrongKey, "fail", "It is unusable", processor)
        const down = yield* examined({ ...environment, STRIPE_API_URL: "http://127.0.0.1:1" })
        has(down, "fail", /StripeConnectionError/, processor)
        yield* stripe.fail(Stripe.rateLimit())
        has(yield* examined(environment), "warn", "(RateLimited)", processor)
        yield* stripe.fail(Stripe.lacksPermission)
        has(yield* examined(environment), "fail", /may not read \S+ \(.*rak_payout_read/, processor)
        yield* sql`update clinics set processor_account = null`
        has(yield* examined(environment), "ok", "No clinic has a connected account to test", processor)
      }).pipe(Effect.provide(double))
    )
  })
})
