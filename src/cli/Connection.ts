/** The connection of clients' commands to the service: HTTP, by the public client. */
import { Config, Effect, Option, Redacted } from "effect"
import { Flag } from "effect/cli"
import { PracticeData } from "../client/index.ts"
import { reasonOf } from "../process/Failure.ts"
import * as Variable from "../process/Variable.ts"
import { misused, refused } from "./Usage.ts"

export const variables = {
  url: Config.NonEmptyString("PRACTICE_DATA_URL"),
  apiKey: Config.Redacted("PRACTICE_DATA_API_KEY"),
  signingSecret: Config.Redacted("PRACTICE_DATA_SIGNING_SECRET")
}

/** Fails if a variable is set whose name is a slip of one of these. */
export const refuseSlips = Variable.refuseSlips(
  Config.all(Object.values<Config.Config<unknown>>(variables).map(Config.option))
)

export const connection = {
  url: Flag.String("url").pipe(
    Flag.withDescription("URL of the service (PRACTICE_DATA_URL; default http://127.0.0.1:3000)"),
    Flag.withFallbackConfig(variables.url),
    Flag.withDefault("http://127.0.0.1:3000")
  ),
  // Others on the machine see a command line.
  apiKey: Flag.Redacted("api-key").pipe(
    Flag.withDescription("API key (prefer PRACTICE_DATA_API_KEY, which other users cannot see)"),
    Flag.withFallbackConfig(variables.apiKey),
    Flag.optional
  )
}

/** Makes a client. Arguments that it refuses are a usage error. */
export const make = <A>(build: () => A) => Effect.try({ try: build, catch: (error) => misused(`${reasonOf(error)}.`) })

export const clientOf = Effect.fnUntraced(function* ({
  apiKey,
  url
}: Readonly<{ url: string; apiKey: Option.Option<Redacted.Redacted> }>) {
  yield* refuseSlips
  if (Option.isNone(apiKey)) {
    return yield* misused("No API key. Set PRACTICE_DATA_API_KEY or --api-key.")
  }
  return yield* make(() => new PracticeData({ baseUrl: url, apiKey: Redacted.value(apiKey.value) }))
})

export const refusalOf = (error: unknown) => refused(reasonOf(error))

/** Sends a request. Interrupting it aborts the request. */
export const sendRequest = <A>(request: (signal: AbortSignal) => Promise<A>) =>
  Effect.tryPromise({ try: request, catch: refusalOf })
