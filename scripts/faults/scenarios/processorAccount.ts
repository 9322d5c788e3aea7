/** The processor account of one clinic is broken. */
import { Array, Effect, Layer } from "effect"
import { accounts } from "../../../src/Demo/DemoProcessor.ts"
import { StripeDouble } from "../../../test/support/StripeDouble.ts"
import { atMost, note, type Scenario, verdict } from "../Scenario.ts"
import * as Callers from "../support/Callers.ts"
import * as Service from "../support/Service.ts"

const secretKey = "sk_test_of_the_double"

const read = (organization: "oakridge" | "harbor") =>
  Service.search("psp-payments", { clinic: `clinic_${organization}_01`, limit: 2 }, organization)

/** Accounts that the processor refuses with 403, and one whose id no header can carry. */
const broken = ["acct_revoked", "acct_ü"] as const

export const processorAccount: Scenario = {
  name: "processor-account",
  done: `Accounts of one clinic that the processor refuses (${broken.join(", ")}) are read 10 times each; another organization reads after each`,
  promise: "the other organization's reads are answered with 200",
  run: Effect.fnUntraced(function* ({ demo }) {
    const { sql, url } = yield* demo
    const double = yield* Layer.build(StripeDouble.layer({ key: secretKey, accounts, platform: "acct_platform" }))
    const stripe = yield* Effect.provide(StripeDouble, double)
    const { port } = yield* Service.start({
      DATABASE_URL: url,
      STRIPE_SECRET_KEY: secretKey,
      STRIPE_API_URL: stripe.url.href
    })
    const ask = (organization: "oakridge" | "harbor", total: number) =>
      Callers.run({
        ports: [port],
        requests: [read(organization)],
        callers: 1,
        total,
        patience: 15_000,
        keepAlive: true
      })
    const before = yield* ask("harbor", 3)
    const after = yield* Effect.forEach(broken, (account) =>
      Effect.gen(function* () {
        yield* sql`update clinics set processor_account = ${account} where id = 'clinic_oakridge_01'`
        const theirs = yield* ask("oakridge", 10)
        return { account, theirs, others: yield* ask("harbor", 10) }
      })
    )
    const wrong = Callers.having([...before, ...Array.flatMap(after, ({ others }) => others)], (status) => status !== 200)
    return verdict(
      atMost(0, "failed reads of the other organization", wrong.length),
      wrong.length > 0 ? note(Callers.tally(wrong)) : note(""),
      ...after.map(({ account, theirs }) => note(`${account}: ${Callers.tally(theirs)}`))
    )
  })
}
