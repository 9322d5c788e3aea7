/** Checks of the payment processor, by one cheap read of a connected account, and of the service or its port. */
import { Effect, Option, Predicate, Redacted, Schema } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { Health } from "../../api/IntakeApi.ts"
import { rowsOf } from "../../database/Columns.ts"
import type { Database } from "../../database/Database.ts"
import { version } from "../../process/Package.ts"
import { assertIsFree } from "../../process/Processes.ts"
import type { PspError } from "../../psp/PspPage.ts"
import type { PspReads } from "../../psp/PspReads.ts"
import * as Stripe from "../../psp/StripeClient.ts"
import type { Settings } from "../Config.ts"
import { type Fact, fail, facts, ok, warn } from "./Check.ts"

const notConfigured = warn("It is not configured: reads of clinics' accounts are 503.", "Set STRIPE_SECRET_KEY.")

/** The state of the processor by the error of a read, without any text of the processor. */
const factOf = (error: PspError): Fact => {
  if (error._tag === "PspFailed" && (error.blame === "psp" || error.blame === "unclear")) {
    return fail(
      `The processor cannot be used (${error.reason}).`,
      "Check STRIPE_SECRET_KEY and STRIPE_API_URL, and the way to the processor from here."
    )
  }
  switch (error._tag) {
    case "RateLimited":
      return warn("The processor limits our rate.", "Find out what else uses the same key.")
    case "PspNotConfigured":
      return notConfigured
    default:
      return warn(
        `The processor is up and takes the key, but not for the account of the clinic that was tried (${"reason" in error ? error.reason : error._tag}).`,
        "Have the clinic connect its account again."
      )
  }
}

interface Processor {
  readonly settings: Settings
  /** The database that has the accounts, if it can be reached. */
  readonly sql: Database | undefined
}

/** The circuit breaker of a running process. */
export const circuit = (state: Effect.Success<PspReads["Service"]["state"]>) => {
  const output = "Cannot be reached"
  return facts(
    state === "none" && { ...ok("It is not configured."), output: "None" },
    state === "down" && { ...fail(output, "Check the way to the processor."), output }
  )
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
  const client = yield* Stripe.make({ secretKey, apiUrl: stripeApiUrl })
  const tried = yield* Effect.match(client.list("payouts", clinic.account, { limit: 1 }), {
    onFailure: factOf,
    onSuccess: () => ok("The processor answers.")
  })
  return [configured, tried]
})

const addressOf = ({ host, port }: Settings) => {
  const reached = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host
  return `http://${reached.includes(":") ? `[${reached}]` : reached}:${port}`
}

/** The health of the service on its port; or whether it could listen there. */
export const service = Effect.fnUntraced(function* (
  settings: Settings
): Effect.fn.Return<ReadonlyArray<Fact>, never, HttpClient.HttpClient> {
  const { host, port } = settings
  if (port === 0) return [ok("PORT=0: it takes a free port.")]
  const address = addressOf(settings)
  const running = yield* HttpClient.get(`${address}/api/v1/health`).pipe(
    Effect.flatMap(HttpClientResponse.filterStatusOk),
    Effect.flatMap(HttpClientResponse.schemaBodyJson(Health)),
    Effect.timeout("2 seconds"),
    Effect.option
  )
  if (Option.isSome(running)) {
    const found = running.value
    return facts(
      ok(`It runs at ${address}, version ${found.version}.`),
      found.version !== version &&
        warn(`It is version ${found.version}, and this is ${version}.`, "Restart it, or use its own command line."),
      ...Object.entries(found.checks).map(
        ([name, { output = "no reason given", status }]) =>
          status !== "pass" &&
          warn(`Its health warns of ${name}: ${output}.`, "See the findings about it here, and its log.")
      )
    )
  }
  return yield* Effect.match(assertIsFree(settings), {
    onSuccess: () => [ok(`It does not run here, and port ${port} is free.`)],
    onFailure: ({ cause }) => {
      const code = String(Predicate.hasProperty(cause, "code") ? cause.code : cause)
      return code === "EADDRINUSE"
        ? [
            warn(
              `Another program listens on port ${port}, or the service does and does not answer.`,
              "Choose another PORT."
            )
          ]
        : [fail(`Nobody can listen on ${host} port ${port} (${code}).`, "Choose another HOST or PORT.")]
    }
  })
})
