/** The processor account of one clinic is broken. */
import { createServer } from "node:http"
import { Array, Effect } from "effect"
import { accounts } from "../../../src/demo/DemoProcessor.ts"
import * as Faults from "../../../test/support/stripe/faults.ts"
import { answerTo } from "../../../test/support/stripe/rules.ts"
import { atMost, note, make, verdict } from "../Scenario.ts"
import * as Callers from "../support/Callers.ts"
import * as Service from "../support/Service.ts"

const secretKey = "sk_test_of_the_double"

/** Accounts that fail each time, and how. The id of the last one is none that a header can carry. */
const broken: Readonly<Record<string, Faults.Fault>> = {
  acct_402: Faults.error(402, { type: "card_error" }),
  acct_403: Faults.error(403, { type: "invalid_request_error" }),
  acct_409: Faults.conflict,
  acct_hangs: Faults.hang,
  acct_łódź: Faults.hang
}

/** A double of the processor, of which some accounts are broken. */
const processor = Effect.acquireRelease(
  Effect.callback<ReturnType<typeof createServer>>((resume) => {
    const server = createServer(({ headers, method = "GET", url = "/" }, response) => {
      const fault = broken[String(headers["stripe-account"])]
      if (fault !== undefined) return fault(response)
      const { body, status } = answerTo(
        { key: secretKey, accounts, platform: "acct_platform" },
        { method, url, headers }
      )
      Faults.answer(status, JSON.stringify(body))(response)
    })
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  }),
  (server) =>
    Effect.sync(() => {
      server.closeAllConnections()
      server.close()
    })
)

const read = (organization: "oakridge" | "harbor") =>
  Service.search("psp-payments", { clinic: `clinic_${organization}_01`, limit: 2 }, organization)

export const processorAccount = make({
  name: "processor-account",
  done: `10 callers at once read the account of a clinic that the processor answers with 402, with 403, with 409, never, and one whose id no header can carry; another organization reads after each`,
  promise: "the other organization's reads are answered with 200",
  run: Effect.fnUntraced(function* ({ demo }) {
    const { sql, url } = yield* demo
    const address = (yield* processor).address()
    const { port } = yield* Service.start({
      DATABASE_URL: url,
      STRIPE_SECRET_KEY: secretKey,
      STRIPE_API_URL: `http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`
    })
    const ask = (organization: "oakridge" | "harbor", callers: number) =>
      Callers.run({
        ports: [port],
        requests: [read(organization)],
        callers,
        total: 10,
        patience: 15_000,
        keepAlive: true
      })
    const before = yield* ask("harbor", 1)
    const after = yield* Effect.forEach(Object.keys(broken), (account) =>
      Effect.gen(function* () {
        yield* sql`update clinics set processor_account = ${account} where id = 'clinic_oakridge_01'`
        const theirs = yield* ask("oakridge", 10)
        return { account, theirs, others: yield* ask("harbor", 1) }
      })
    )
    const wrong = Callers.unlike([...before, ...Array.flatMap(after, ({ others }) => others)], Callers.isGood)
    return verdict(
      atMost(0, "failed reads of the other organization", wrong.length),
      wrong.length > 0 ? note(Callers.tally(wrong)) : note(""),
      ...after.map(({ account, theirs }) => note(`${account}: ${Callers.tally(theirs)}`))
    )
  })
})
