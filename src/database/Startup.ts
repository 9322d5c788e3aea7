/** The part of a start that waits for databases: layers that need the migrations, and warnings about connections. */
import { Duration, Effect, Fiber, Layer, Option, Redacted, Result, Schedule } from "effect"
import * as ConnectionUrl from "./ConnectionUrl.ts"
import { CredentialDatabase, type Database, RecordDatabase, sessionSettings, TaskDatabase } from "./Database.ts"
import { type DatabaseSettings, namesOf, poolsOf } from "./Databases.ts"
import { untilMigrated } from "./Migrations.ts"
import * as SessionSettings from "./SessionSettings.ts"

/**
 * Builds a layer once the task database is migrated, without delaying anything else. Warns once about each database that
 * lacks migrations.
 */
export const afterMigration = <E, R>(settings: DatabaseSettings, worker: Layer.Layer<never, E, R>) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const names = namesOf(settings)
      const tasks = yield* Effect.forkScoped(untilMigrated(names.tasks, yield* TaskDatabase))
      if (names.credentials !== names.tasks) {
        yield* Effect.forkScoped(untilMigrated(names.credentials, yield* CredentialDatabase))
      }
      yield* Effect.forkScoped(Effect.andThen(Fiber.join(tasks), Layer.buildWithScope(worker, scope)))
    })
  )

const warnIgnored = (variable: string, url: Option.Option<Redacted.Redacted>) => {
  const ignored = Option.match(url, {
    onNone: () => [],
    onSome: (text) =>
      Result.getOrElse(
        Result.map(ConnectionUrl.parse(Redacted.value(text)), (read) => read.ignored),
        () => []
      )
  })
  return ignored.length === 0
    ? Effect.void
    : Effect.logWarning(`${variable} has parameters that nothing reads: ${ignored.slice(0, 16).join(", ")}`)
}

/** Compares the settings of a session with those that its pool asks for, once the database responds. */
const warnLost = (name: string, database: Database, asked: SessionSettings.Settings) => {
  const request = { key: "the settings", within: Duration.seconds(5), unavailable: () => "no answer" as const }
  const look = Effect.gen(function* () {
    const lost = yield* SessionSettings.lost(database, asked)
    return { lost, statements: yield* SessionSettings.statementsFor(database, lost) }
  })
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

/** Warns about unsupported parameters of the URLs, and about settings that sessions lack. */
export const notices = (settings: DatabaseSettings) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      yield* warnIgnored("DATABASE_URL", settings.databaseUrl)
      yield* warnIgnored("READ_DATABASE_URL", settings.readDatabaseUrl)
      yield* warnIgnored("CREDENTIALS_DATABASE_URL", settings.credentialsDatabaseUrl)
      if (Option.isNone(settings.databaseUrl)) return
      const { credentials, records, tasks } = poolsOf(settings, settings.databaseUrl.value, "1 second")
      const pools = [
        [records, yield* RecordDatabase],
        [credentials, yield* CredentialDatabase],
        [tasks, yield* TaskDatabase]
      ] as const
      yield* Effect.forEach(pools, ([pool, database]) =>
        Effect.forkScoped(warnLost(pool.name, database, sessionSettings(pool)))
      )
    })
  )
