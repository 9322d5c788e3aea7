/** Checks the payment processor by one cheap read of a connected account. */
import { Effect, Option, Redacted } from "effect"
import type { PgClient } from "@effect/sql-pg"
import type { Settings } from "../../app/Config.ts"
import * as Stripe from "../../psp/StripeClient.ts"
import type { PspError } from "../../psp/PspPage.ts"
import { fail, ok, type Said, warn } from "./Finding.ts"

/** What a read of an account says of the processor. No text of the processor is told. */
const sayOf = (error: PspError): Said => {
  switch (error._tag) {
    case "PspUnavailable":
    case "PspErred":
      return fail(
        `The processor cannot be used (${error.reason}).`,
        "Check STRIPE_SECRET_KEY and STRIPE_API_URL, and the way to the processor from here."
      )
    case "RateLimited":
      return warn("The processor limits our rate.", "Find out what else uses the same key.")
    case "PspNotConfigured":
      return warn("It is not configured: reads of clinics' accounts are 503.", "Set STRIPE_SECRET_KEY.")
    default:
      return warn(
        `The processor is up and takes the key, but not for the account of the clinic that was tried (${error._tag}).`,
        "Have the clinic connect its account again."
      )
  }
}

const kindOf = (key: Redacted.Redacted) => (Redacted.value(key).startsWith("sk_test_") ? "a test key" : "a key")

/**
 * The processor.
 *
 * @param sql the database that knows the accounts; none if it cannot be reached
 */
export const check = Effect.fnUntraced(function* (settings: Settings, sql: PgClient.PgClient | undefined) {
  const { databaseUrl, stripeApiUrl, stripeSecretKey } = settings
  if (Option.isNone(stripeSecretKey)) {
    return Option.isNone(databaseUrl)
      ? [ok("It is the demo processor of the embedded database.")]
      : [warn("It is not configured: reads of clinics' accounts are 503.", "Set STRIPE_SECRET_KEY.")]
  }
  const configured = ok(`It is configured with ${kindOf(stripeSecretKey.value)}.`)
  if (sql === undefined) return [configured]
  const [clinic] = yield* sql<{ account: string }>`
    select processor_account as account from clinics where processor_account is not null limit 1`
  if (clinic === undefined) {
    return [configured, ok("No clinic has a connected account, so none was tried.")]
  }
  const client = yield* Stripe.make({ secretKey: stripeSecretKey.value, apiUrl: stripeApiUrl })
  const tried = yield* client.list("payouts", clinic.account, { limit: 1 }).pipe(
    Effect.as(ok("The processor answers.")),
    Effect.catch((error) => Effect.succeed(sayOf(error)))
  )
  return [configured, tried]
})
