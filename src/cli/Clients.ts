/** The connection of commands to a service, as its clients have it. */
import { Config, Effect, Option, Redacted } from "effect"
import { Flag } from "effect/cli"
import { PracticeData } from "../client/index.ts"
import { reasonOf } from "../process/Failure.ts"
import { misused } from "./Usage.ts"

export const connection = {
  url: Flag.String("url").pipe(
    Flag.withDescription("URL of the service (PRACTICE_DATA_URL; default http://127.0.0.1:3000)"),
    Flag.withFallbackConfig(Config.NonEmptyString("PRACTICE_DATA_URL")),
    Flag.withDefault("http://127.0.0.1:3000")
  ),
  // Others on the machine see a command line.
  apiKey: Flag.Redacted("api-key").pipe(
    Flag.withDescription("API key (prefer PRACTICE_DATA_API_KEY, which other users cannot see)"),
    Flag.withFallbackConfig(Config.Redacted("PRACTICE_DATA_API_KEY")),
    Flag.optional
  )
}

/** Makes a client. Arguments that it refuses are a usage error. */
export const clientOf = Effect.fnUntraced(function* ({
  apiKey,
  url
}: Readonly<{ url: string; apiKey: Option.Option<Redacted.Redacted> }>) {
  if (Option.isNone(apiKey)) {
    return yield* misused("No API key. Set PRACTICE_DATA_API_KEY or --api-key.")
  }
  return yield* Effect.try({
    try: () => new PracticeData({ baseUrl: url, apiKey: Redacted.value(apiKey.value) }),
    catch: (error) => misused(`${reasonOf(error)}.`)
  })
})
