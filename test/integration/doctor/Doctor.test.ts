/** What the doctor says of the variables, of the way to a database, and of what is around it. */
import { createServer } from "node:net"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
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
import * as Pooler from "./Pooler.ts"

const secret = "s3cret-passw0rd"
const nowhere = `postgres://someone:${secret}@127.0.0.1:1/nothing`

describe.concurrent("The doctor", () => {
  test.live("tells what is set, without secrets, and each variable that is wrong or mistyped", () =>
    Effect.gen(function* () {
      const findings = yield* examined({
        DATABASE_URL: nowhere,
        STRIPE_SECRET_KEY: secret,
        DELETION_DELAY: "soon",
        RATE_LIMIT: "0",
        DATABSE_URL: "x",
        DTABSE_URL: "x"
      })
      has(findings, "ok", "DATABASE_URL=postgres://someone@127.0.0.1:1/nothing")
      has(findings, "ok", "STRIPE_SECRET_KEY=(set)")
      has(findings, "fail", "DELETION_DELAY: expected a duration")
      has(findings, "fail", "RATE_LIMIT: expected an integer")
      has(findings, "fail", "DATABSE_URL")
      has(findings, "warn", "DTABSE_URL")
      assert.notInclude(json(findings), secret)
    })
  )

  test.live("tells of each database that cannot be reached, and goes on", () =>
    Effect.gen(function* () {
      const findings = yield* examined({
        DATABASE_URL: nowhere,
        CREDENTIALS_DATABASE_URL: nowhere.replace("nothing", "keys")
      })
      for (const area of ["DATABASE_URL", "CREDENTIALS_DATABASE_URL"]) has(findings, "fail", "cannot be reached", area)
      has(findings, "warn", "It is not configured", "Payment processor")
      has(findings, "ok", "PORT=0", "Service")
      assert.notInclude(json(findings), secret)
    })
  )

  test.live("tells of a folder that cannot be written, and of processes that the embedded database cannot have", () =>
    Effect.gen(function* () {
      const folder = yield* Process.temporaryFolder
      yield* Effect.sync(() => writeFileSync(join(folder, "file"), ""))
      const findings = yield* examined({ DATA_DIR: join(folder, "file", "data"), PROCESSES: "2" })
      has(findings, "fail", "cannot be written", "Embedded database")
      has(findings, "fail", "PROCESSES=2 needs a Postgres", "Embedded database")
      has(yield* examined({ DATA_DIR: join(folder, "new") }), "ok", "the first start makes it", "Embedded database")
      has(yield* examined({ DATA_DIR: "memory" }), "ok", "in the memory of the service", "Embedded database")
    })
  )

  test.live("warns of an operators' listener that other machines reach", () =>
    Effect.gen(function* () {
      const open = { DATABASE_URL: nowhere, OPERATIONS_PORT: "9464", OPERATIONS_HOST: "0.0.0.0" }
      has(yield* examined(open), "warn", "there is no OPERATIONS_TOKEN", "Configuration")
      const withToken = yield* examined({ ...open, OPERATIONS_TOKEN: "correct-horse-battery" })
      has(withToken, "warn", "without a token", "Configuration")
      assert.notInclude(withToken.map(({ message }) => message).join(), "correct-horse")
      const local = yield* examined({ ...open, OPERATIONS_HOST: "127.0.0.1" })
      assert.isFalse(local.some(({ message, status }) => status === "warn" && message.includes("OPERATIONS_HOST")))
    })
  )

  test.live("tells of an address that cannot be listened on", () =>
    Effect.gen(function* () {
      const port = yield* Effect.acquireRelease(
        Effect.callback<number>((resume) => {
          // Another program, which sends on to the health of a service.
          const health = `HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{"version":"9","checks":{}}`
          const redirect = "HTTP/1.1 307 Temporary Redirect\r\nConnection: close\r\nLocation: /elsewhere\r\n\r\n"
          const server = createServer((socket) => {
            socket.once("data", (request) => socket.end(request.includes("/elsewhere") ? health : redirect))
          }).listen(0, "127.0.0.1", () => {
            const address = server.address()
            resume(Effect.succeed(address === null || typeof address === "string" ? 0 : address.port))
          })
          server.unref()
        }),
        () => Effect.void
      )
      const database = { DATABASE_URL: nowhere }
      const taken = yield* examined({ ...database, HOST: "127.0.0.1", PORT: String(port) })
      has(taken, "warn", `Another program listens on port ${port}`, "Service")
      has(yield* examined({ ...database, HOST: "203.0.113.7", PORT: "3999" }), "fail", "Nobody can listen", "Service")
    })
  )
})

layer(TestDatabase.layerDemo, { excludeTestServices: true })("The doctor", (it) => {
  it.effect(
    "does not wait for a database that hangs",
    () =>
      Effect.gen(function* () {
        const { hostname, port } = new URL((yield* TestDatabase).url)
        const proxy = yield* TcpProxy.make({ host: hostname, port: Number(port) })
        yield* proxy.cut("swallow")
        const url = nowhere.replace(":1/", `:${proxy.port}/`)
        const [took, findings] = yield* Effect.timed(examined({ DATABASE_URL: url, READ_DATABASE_URL: `${url}2` }))
        for (const area of ["DATABASE_URL", "READ_DATABASE_URL"]) has(findings, "fail", /cannot be/, area)
        has(findings, "ok", "PORT=0")
        assert.isBelow(Duration.toSeconds(took), inTime(15))
      }),
    long
  )

  it.effect(
    "tells of a pooler that swallows settings, that refuses them, and that is far away",
    () =>
      Effect.gen(function* () {
        const { url } = yield* TestDatabase
        const far = yield* Pooler.before(url, { parameters: "swallowed", delay: 25 })
        const swallowed = yield* examined({ DATABASE_URL: far })
        has(swallowed, "fail", "statement_timeout is 0 instead of 60000", "DATABASE_URL")
        has(swallowed, "fail", "enable_seqscan is on instead of off", "DATABASE_URL")
        has(swallowed, "warn", "It is far away", "DATABASE_URL")
        const refused = yield* examined({ DATABASE_URL: yield* Pooler.before(url, { parameters: "refused" }) })
        has(refused, "warn", "A connection pooler refuses to be asked for settings", "DATABASE_URL")
        has(refused, "fail", "enable_seqscan is on instead of off", "DATABASE_URL")
      }),
    long
  )

  it.effect(
    "tells of a connection to another machine that is not encrypted",
    () =>
      Effect.gen(function* () {
        // This machine too, by an address that is not known to be.
        const url = Object.assign(new URL((yield* TestDatabase).url), { hostname: "0.0.0.0" })
        const findings = yield* examined({ DATABASE_URL: url.href })
        has(findings, "warn", "The connection is not encrypted.", "DATABASE_URL")
        const { host } = url
        has(findings, "ok", `The task store is at ${host}: not encrypted; login postgres, the password of the URL.`)
        has(findings, "ok", `DATABASE_URL=postgres://postgres@${host}/`)
      }),
    long
  )
})

const secretKey = "sk_test_of_the_double"

layer(TestDatabase.layerDemo, { excludeTestServices: true })("The doctor", (it) => {
  it.effect(
    "tries the payment processor with an account that is connected",
    () =>
      Effect.gen(function* () {
        const { url, sql } = yield* TestDatabase
        const stripe = yield* StripeDouble
        const environment = { DATABASE_URL: url, STRIPE_SECRET_KEY: secretKey, STRIPE_API_URL: stripe.url.href }
        const fine = yield* examined(environment)
        has(fine, "ok", "It is configured with a test key", "Payment processor")
        has(fine, "ok", "The processor answers", "Payment processor")
        const wrongKey = yield* examined({ ...environment, STRIPE_SECRET_KEY: "sk_live_wrong" })
        has(wrongKey, "fail", "The processor cannot be used", "Payment processor")
        const down = yield* examined({ ...environment, STRIPE_API_URL: "http://127.0.0.1:1" })
        has(down, "fail", /StripeConnectionError/, "Payment processor")
        yield* stripe.fail(Faults.rateLimit())
        has(yield* examined(environment), "warn", "limits our rate", "Payment processor")
        yield* sql`update clinics set processor_account = null`
        has(yield* examined(environment), "ok", "No clinic has a connected account", "Payment processor")
      }).pipe(Effect.provide(StripeDouble.layer({ key: secretKey, accounts, platform: "acct_platform" }))),
    long
  )

  it.effect(
    "tells that the service runs, and what its health warns of",
    () =>
      Effect.gen(function* () {
        const { url } = yield* TestDatabase
        const { address } = yield* Process.start({ DATABASE_URL: url, READ_DATABASE_URL: nowhere })
        const { port } = new URL(yield* address)
        const findings = yield* examined({ DATABASE_URL: url, PORT: port })
        has(findings, "ok", /^It runs at .+ version \d/, "Service")
        has(findings, "warn", "Its health warns of records", "Service")
      }),
    long
  )
})
