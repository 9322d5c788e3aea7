/** Checks of the payment processor, by one cheap read of a connected account, and of the service or its port. */
import { Effect, Option, Redacted, Schema } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { Health } from "../../api/IntakeApi.ts"
import { rowsOf } from "../../database/Columns.ts"
import { formatHost } from "../../database/ConnectionUrl.ts"
import type { Database } from "../../database/Database.ts"
import * as Failure from "../../process/Failure.ts"
import { version } from "../../process/Package.ts"
import { assertIsFree } from "../../process/Processes.ts"
import { makeStripe, type PspError } from "../../psp/PspClient.ts"
import type { Settings } from "../Config.ts"
import { type Fact, fail, facts, ok, warn } from "./Check.ts"

const notConfigured = warn("It is not configured: reads of clinics' accounts are 503.", "Set STRIPE_SECRET_KEY.")

/** The state of the processor by the error of a read, without any text of the processor. */
const factOf = (error: PspError): Fact =>
  error._tag === "PspFailed" && (error.blame === "psp" || error.blame === "unclear")
    ? fail(
        `The processor cannot be used (${error.reason}).`,
        "Check STRIPE_SECRET_KEY and STRIPE_API_URL, and the way to the processor from here."
      )
    : warn(
        `The processor takes the key, and refuses to read the account of a clinic (${"reason" in error ? error.reason : error._tag}).`,
        "Try again later. If it stays, have the clinic connect its account again."
      )

interface Processor {
  readonly settings: Settings
  /** The database that has the accounts, if it can be reached. */
  readonly sql: Database | undefined
}

const Account = Schema.Struct({ account: Schema.String })

export const processor = Effect.fnUntraced(function* ({ settings, sql }: Processor) {
  const { databaseUrl, stripeApiUrl, stripeSecretKey } = settings
  if (Option.isNone(stripeSecretKey)) {
    return [Option.isNone(databaseUrl) ? ok("It is the demo processor of the embedded database.") : notConfigured]
  }
  const secretKey = stripeSecretKey.value
  const kind = Redacted.value(secretKey).startsWith("sk_test_") ? "a test key" : "a key"
  const configured = ok(`It is configured with ${kind}.`)
  if (sql === undefined) return [configured]
  const [clinic] = yield* rowsOf(Account)(
    sql`select processor_account as account from clinics where processor_account is not null limit 1`
  )
  if (clinic === undefined) return [configured, ok("No clinic has a connected account, so none was tried.")]
  const client = makeStripe({ secretKey, apiUrl: stripeApiUrl })
  const tried = yield* Effect.match(client.list("payouts", clinic.account, { limit: 1 }), {
    onFailure: factOf,
    onSuccess: () => ok("The processor answers.")
  })
  return [configured, tried]
})

/** An address to listen on, as this machine reaches it. */
export const reachable = (address: string) =>
  address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")

/** The health of the service on its port; or whether it could listen there. */
export const service = Effect.fnUntraced(function* (
  settings: Settings
): Effect.fn.Return<ReadonlyArray<Fact>, never, HttpClient.HttpClient> {
  if (settings.port === 0) return [ok("PORT=0: it takes a free port.")]
  const address = reachable(`http://${formatHost(settings)}`)
  const running = yield* HttpClient.get(`${address}/api/v1/health`).pipe(
    Effect.flatMap(HttpClientResponse.filterStatusOk),
    Effect.flatMap(HttpClientResponse.schemaBodyJson(Health)),
    Effect.timeout("2 seconds"),
    Effect.option
  )
  if (Option.isNone(running)) {
    return yield* Effect.match(assertIsFree(settings), {
      onSuccess: () => [ok(`It does not run here, and port ${settings.port} is free.`)],
      onFailure: (error) => [fail(`It does not answer at ${address}, and cannot start there.`, Failure.explain(error))]
    })
  }
  const { checks, version: own } = running.value
  return facts(
    ok(`It runs at ${address}, version ${own}; this is ${version}.`),
    ...Object.entries(checks).map(
      ([name, { output, status }]) =>
        status === "warn" && warn(`Its health warns of ${name}: ${output}.`, "See the other findings, and its log.")
    )
  )
})
