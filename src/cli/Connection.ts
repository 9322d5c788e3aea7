/** How the commands of clients reach the service: over HTTP, by the client that anybody can use. */
import { Config, Effect, Option, Redacted } from "effect"
import { Flag } from "effect/cli"
import { PracticeData } from "../client/index.ts"
import * as Variable from "../process/Variable.ts"
import { Refused } from "./Refused.ts"
import { misused } from "./Usage.ts"

/** The variables of the commands of clients. */
export const variables = {
  url: Config.NonEmptyString("PRACTICE_DATA_URL"),
  apiKey: Config.Redacted("PRACTICE_DATA_API_KEY"),
  signingSecret: Config.Redacted("PRACTICE_DATA_SIGNING_SECRET")
}

/** Fails where a variable is set that is a slip of one of these. */
export const refuseSlips = Variable.refuseSlips(
  Config.all(Object.values<Config.Config<unknown>>(variables).map(Config.option))
)

/** The address of the service. */
export const url = Flag.String("url").pipe(
  Flag.withDescription("Address of the service (PRACTICE_DATA_URL; http://127.0.0.1:3000 by default)"),
  Flag.withFallbackConfig(variables.url),
  Flag.withDefault("http://127.0.0.1:3000")
)

/** The API key. Others on the machine can see what stands on a command line. */
export const apiKey = Flag.Redacted("api-key").pipe(
  Flag.withDescription("API key (better: PRACTICE_DATA_API_KEY, which other users do not see)"),
  Flag.withFallbackConfig(variables.apiKey),
  Flag.optional
)

/** The flags of a command that reads. */
export const connection = { url, apiKey }

/** What these flags give. */
export interface Given {
  readonly url: string
  readonly apiKey: Option.Option<Redacted.Redacted>
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

/**
 * A client.
 *
 * @param command the names of the command, for the message that a key is missing
 */
export const clientOf = Effect.fnUntraced(function* (command: ReadonlyArray<string>, given: Given) {
  yield* refuseSlips
  if (Option.isNone(given.apiKey)) {
    return yield* misused(command, "There is no API key. Set PRACTICE_DATA_API_KEY, or give --api-key.")
  }
  const key = Redacted.value(given.apiKey.value)
  return yield* Effect.try({
    try: () => new PracticeData({ baseUrl: given.url, apiKey: key }),
    catch: (error) => misused(command, `${messageOf(error)}.`)
  })
})

/** The failure of a request, for a person. */
export const refusalOf = (error: unknown) => new Refused({ message: messageOf(error) })

/** Asks the service. Interrupting it aborts the request. */
export const ask = <A>(request: (signal: AbortSignal) => Promise<A>) =>
  Effect.tryPromise({ try: request, catch: refusalOf })
