/** The payment processor, and the account of one clinic there. */
import { createServer, type Server } from "node:http"
import { Effect } from "effect"
import { accounts } from "../../../../src/demo/DemoProcessor.ts"
import * as Faults from "../../../../test/support/stripe/faults.ts"
import { answerTo } from "../../../../test/support/stripe/rules.ts"
import * as Service from "../../support/Service.ts"
import { everyday, type Fault, make, problemOf, start, traffic } from "../Fault.ts"

const secretKey = "sk_test_of_the_double"

/** A double of the processor, of which an account can be broken, or all of it. */
const double = Effect.gen(function* () {
  let isDown = false
  const broken = new Set<string>()
  const server = yield* Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const made = createServer(({ headers, method = "GET", url = "/" }, response) => {
        if (isDown) return response.destroy()
        if (broken.has(String(headers["stripe-account"])))
          return Faults.error(403, { type: "invalid_request_error" })(response)
        const { body, status } = answerTo(
          { key: secretKey, accounts, platform: "acct_platform" },
          { method, url, headers }
        )
        Faults.answer(status, JSON.stringify(body))(response)
      })
      made.listen(0, "127.0.0.1", () => resume(Effect.succeed(made)))
    }),
    (made) =>
      Effect.sync(() => {
        made.closeAllConnections()
        made.close()
      })
  )
  const address = server.address()
  return {
    url: `http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`,
    setDown: (down: boolean) =>
      Effect.sync(() => {
        isDown = down
      }),
    breakAccount: (account: string) => Effect.sync(() => broken.add(account)),
    mendAccounts: Effect.sync(() => broken.clear())
  }
})

const reads = (["oakridge", "harbor"] as const).map((organization) =>
  Service.search("psp-payments", { clinic: `clinic_${organization}_01`, limit: 2 }, organization)
)

const withDouble = (url: string) =>
  Effect.gen(function* () {
    const fake = yield* double
    const service = yield* start({ DATABASE_URL: url, STRIPE_SECRET_KEY: secretKey, STRIPE_API_URL: fake.url })
    yield* traffic(service.port, [...everyday, ...reads])
    return { fake, service }
  })

export const processor: ReadonlyArray<Fault> = [
  make({
    name: "processor-down",
    done: "The payment processor closes every connection",
    seen: {
      alert: "PracticeDataProcessorDown",
      says: "The payment processor does not answer",
      log: /Circuit breaker open: .*processor/,
      health: problemOf("processor")
    },
    stand: Effect.fnUntraced(function* (ground) {
      const { url } = yield* ground.demo
      const { fake, service } = yield* withDouble(url)
      return { services: [service] as const, begin: fake.setDown(true), heal: fake.setDown(false) }
    })
  }),
  make({
    name: "processor-account",
    done: "The payment processor refuses the account of one clinic with 403",
    seen: {
      alert: "PracticeDataProcessorAccountFails",
      says: "the processor itself answers",
      log: /Circuit breaker open/
    },
    stand: Effect.fnUntraced(function* (ground) {
      const { sql, url } = yield* ground.demo
      const { fake, service } = yield* withDouble(url)
      const [clinic] = yield* sql<{ account: string }>`
        select processor_account as account from clinics where id = 'clinic_oakridge_01'`
      return {
        services: [service] as const,
        begin: fake.breakAccount(clinic?.account ?? ""),
        heal: fake.mendAccounts
      }
    })
  })
]
