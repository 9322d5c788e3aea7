/** What a start says of the connections to the databases: once, and as soon as they answer. */
import { Duration, Effect, Layer, Option, Redacted, Result, Schedule } from "effect"
import * as ConnectionUrl from "./ConnectionUrl.ts"
import { CredentialDatabase, type Database, RecordDatabase, sessionSettings, TaskDatabase } from "./Database.ts"
import { type DatabaseSettings, poolsOf } from "./Databases.ts"
import * as SessionSettings from "./SessionSettings.ts"

const ignored = (variable: string, url: Option.Option<Redacted.Redacted>) => {
  const read = Option.map(url, (text) => ConnectionUrl.parse(Redacted.value(text)))
  if (Option.isNone(read) || Result.isFailure(read.value) || read.value.success.ignored.length === 0) return Effect.void
  const names = read.value.success.ignored
  return Effect.logWarning(`${variable} has parameters that nothing reads: ${names.slice(0, 16).join(", ")}`)
}

/** Looks at a session of a pool until it has one. */
const settingsOf = (name: string, database: Database, asked: SessionSettings.Settings) => {
  const request = { key: "the settings", within: Duration.seconds(5), unavailable: () => "no answer" as const }
  const look = Effect.flatMap(SessionSettings.lost(database, asked), (lost) =>
    Effect.map(SessionSettings.statementsFor(database, lost), (statements) => ({ lost, statements }))
  )
  return Effect.retry(database.run(request, look), Schedule.spaced("1 second")).pipe(
    Effect.flatMap(({ lost, statements }) =>
      lost.length === 0
        ? Effect.void
        : Effect.logWarning(
            `The sessions of the ${name} lack settings that they ask for, as behind a connection pooler: ${SessionSettings.describe(lost)}. To set them for good: ${statements.join("; ")}`
          )
    )
  )
}

/** Says which parameters of the URLs nothing reads, and which settings sessions lack. */
export const layer = (settings: DatabaseSettings) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      yield* ignored("DATABASE_URL", settings.databaseUrl)
      yield* ignored("READ_DATABASE_URL", settings.readDatabaseUrl)
      yield* ignored("CREDENTIALS_DATABASE_URL", settings.credentialsDatabaseUrl)
      if (Option.isNone(settings.databaseUrl)) return
      const { credentials, records, tasks } = poolsOf(settings, settings.databaseUrl.value, "1 second")
      const pools = [
        [records, yield* RecordDatabase],
        [credentials, yield* CredentialDatabase],
        [tasks, yield* TaskDatabase]
      ] as const
      yield* Effect.forEach(pools, ([pool, database]) =>
        Effect.forkScoped(settingsOf(pool.name, database, sessionSettings(pool)))
      )
    })
  )
