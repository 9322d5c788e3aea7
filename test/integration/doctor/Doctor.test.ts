/** The findings of the doctor about variables, the route to a database, the processor and the service. */
import { assert, describe, it as test, layer } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { json } from "../../support/Client.ts"
import * as Process from "../../support/Process.ts"
import * as TcpProxy from "../../support/TcpProxy.ts"
import { accounts } from "../../../src/demo/DemoProcessor.ts"
import { inTime } from "../../support/inTime.ts"
import { StripeDouble } from "../../support/StripeDouble.ts"
import * as Faults from "../../support/stripe/faults.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { long } from "../../support/tries.ts"
import { examined, has } from "./examined.ts"

const secret = "s3cret-passw0rd"
const nowhere = `postgres://someone:${secret}@127.0.0.1:1/nothing`

const processor = "Payment processor"

type Expected = readonly [status: "ok" | "warn" | "fail", message: RegExp | string, area?: string]

const open = { DATABASE_URL: nowhere, OPERATIONS_PORT: "9464", OPERATIONS_HOST: "0.0.0.0" }
const mistakes = { DELETION_DELAY: "soon", RATE_LIMIT: "0" }

const cases: ReadonlyArray<readonly [what: string, Readonly<Record<string, string>>, ReadonlyArray<Expected>]> = [
  [
    "variables that are set or wrong",
    { DATABASE_URL: nowhere, STRIPE_SECRET_KEY: secret, ...mistakes },
    [
      ["ok", "DATABASE_URL=postgres://someone@127.0.0.1:1/nothing"],
      ["ok", "STRIPE_SECRET_KEY=(set)"],
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
      ["warn", "It is not configured", processor],
      ["ok", "PORT=0", "Service"]
    ]
  ],
  [
    "an operators' listener that other machines reach",
    open,
    [["warn", "lets other machines read /metrics", "Configuration"]]
  ],
  [
    "an embedded database that is not made yet",
    { DATA_DIR: "memory" },
    [["ok", "the first start creates it", "Embedded database"]]
  ],
  [
    "an address that cannot be listened on",
    { DATABASE_URL: nowhere, HOST: "203.0.113.7", PORT: "3999" },
    [["fail", "cannot start there", "Service"]]
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

  test.live("does not warn of an operators' listener on loopback", () =>
    Effect.map(examined({ ...open, OPERATIONS_HOST: "127.0.0.1" }), (findings) =>
      assert.notInclude(json(findings), "without a token")
    )
  )
})

const key = "sk_test_of_the_double"
const double = StripeDouble.layer({ key, accounts, platform: "acct_platform" })

describe("over a database,", long, () => {
  layer(TestDatabase.layerDemo, { excludeTestServices: true })("the doctor", (it) => {
    it.effect("does not wait for a database that hangs", () =>
      Effect.gen(function* () {
        const { proxy } = yield* TcpProxy.through((yield* TestDatabase).url)
        yield* proxy.cut("swallow")
        const url = nowhere.replace(":1/", `:${proxy.port}/`)
        const [took, findings] = yield* Effect.timed(examined({ DATABASE_URL: url, READ_DATABASE_URL: `${url}2` }))
        for (const area of ["DATABASE_URL", "READ_DATABASE_URL"]) has(findings, "fail", /could not be checked/, area)
        has(findings, "ok", "PORT=0")
        assert.isBelow(Duration.toSeconds(took), inTime(15))
      })
    )

    it.effect("reports a connection to another machine that is not encrypted", () =>
      Effect.gen(function* () {
        // This machine too, by an address that is not known to be.
        const url = Object.assign(new URL((yield* TestDatabase).url), { hostname: "0.0.0.0" })
        const findings = yield* examined({ DATABASE_URL: url.href })
        has(findings, "warn", "can be read or intercepted: not encrypted", "DATABASE_URL")
        const { host } = url
        has(findings, "ok", `The task store is at ${host}: not encrypted.`)
        has(findings, "ok", `DATABASE_URL=postgres://postgres@${host}/`)
      })
    )

    it.effect("reports sessions that fire no triggers", () =>
      Effect.gen(function* () {
        const { url } = yield* TestDatabase
        const findings = yield* examined({ DATABASE_URL: `${url}?options=-c%20session_replication_role%3Dreplica` })
        has(findings, "fail", "session_replication_role = replica", "DATABASE_URL")
      })
    )

    it.effect("reports sessions that accept only reads, as a managed server's do while its disk is full", () =>
      Effect.gen(function* () {
        const { url } = yield* TestDatabase
        const findings = yield* examined({ DATABASE_URL: `${url}?options=-c%20default_transaction_read_only%3Don` })
        has(findings, "fail", "It accepts only reads", "DATABASE_URL")
      })
    )

    it.effect("reports a running service, and the warnings of its health", () =>
      Effect.gen(function* () {
        const { url } = yield* TestDatabase
        const { address } = yield* Process.start({ DATABASE_URL: url, READ_DATABASE_URL: nowhere })
        const { port } = new URL(yield* address)
        const findings = yield* examined({ DATABASE_URL: url, PORT: port })
        has(findings, "ok", /^It is running at .+ version \d/, "Service")
        has(findings, "warn", "Its health endpoint warns about records", "Service")
      })
    )

    it.effect("tries the payment processor with an account that is connected", () =>
      Effect.gen(function* () {
        const { url, sql } = yield* TestDatabase
        const stripe = yield* StripeDouble
        const environment = { DATABASE_URL: url, STRIPE_SECRET_KEY: key, STRIPE_API_URL: stripe.url.href }
        const fine = yield* examined(environment)
        has(fine, "ok", "It is configured with a test key", processor)
        has(fine, "ok", "The processor responds", processor)
        const wrongKey = yield* examined({ ...environment, STRIPE_SECRET_KEY: "sk_live_wrong" })
        has(wrongKey, "fail", "The processor is unusable", processor)
        const down = yield* examined({ ...environment, STRIPE_API_URL: "http://127.0.0.1:1" })
        has(down, "fail", /StripeConnectionError/, processor)
        yield* stripe.fail(Faults.rateLimit())
        has(yield* examined(environment), "warn", "(RateLimited)", processor)
        yield* sql`update clinics set processor_account = null`
        has(yield* examined(environment), "ok", "No clinic has a connected account", processor)
      }).pipe(Effect.provide(double))
    )
  })
})
