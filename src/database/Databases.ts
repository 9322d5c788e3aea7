/** The databases that the configuration names, migrated where it says so. */
import { type Duration, Effect, Layer, Option } from "effect"
import { Reactivity } from "effect/reactivity"
import type { Settings } from "../Config.ts"
import { loadDemoData } from "../demo/Load.ts"
import {
  lockTimeout,
  CredentialDatabase,
  connect,
  inOrder,
  layerShared,
  RecordDatabase,
  TaskDatabase
} from "./Database.ts"
import * as Embedded from "./Embedded.ts"
import { isMigrated, migrate } from "./Migrations.ts"

type DatabaseSettings = Pick<
  Settings,
  "databaseUrl" | "readDatabaseUrl" | "credentialsDatabaseUrl" | "dataDir" | "migrate" | "poolSize"
>

const embedded = (settings: DatabaseSettings) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const sql = yield* Embedded.connect(settings.dataDir)
      if (Option.getOrElse(settings.migrate, () => true)) yield* migrate(sql)
      if (yield* isMigrated(sql)) yield* loadDemoData(sql)
      return layerShared(sql)
    })
  ).pipe(Layer.provide(Reactivity.layer))

const migrating = Effect.gen(function* () {
  // That of the records may be a replica, which takes the migrations over from this one.
  yield* migrate(yield* TaskDatabase)
  yield* migrate(yield* CredentialDatabase)
})

/** What the databases that are migrated are called, to begin a sentence with. */
export const namesOf = ({ credentialsDatabaseUrl, databaseUrl }: DatabaseSettings) => {
  const tasks = Option.isNone(databaseUrl) ? "The embedded database" : "The database of DATABASE_URL"
  const isApart = Option.isSome(databaseUrl) && Option.isSome(credentialsDatabaseUrl)
  return { tasks, credentials: isApart ? "The database of CREDENTIALS_DATABASE_URL" : tasks }
}

/**
 * All databases. The embedded one is filled with the demo data when it is new; no other ever is.
 *
 * @param connectTimeout how long a connection to a Postgres may take to open
 */
export const layer = (settings: DatabaseSettings, connectTimeout: Duration.Input = "1 second") =>
  Option.match(settings.databaseUrl, {
    onNone: () => embedded(settings),
    onSome: (url) => {
      const options = { maxConnections: settings.poolSize, connectTimeout, statementTimeout: "5 seconds" } as const
      const databases = Layer.mergeAll(
        Layer.effect(
          RecordDatabase,
          connect({
            ...options,
            url: Option.getOrElse(settings.readDatabaseUrl, () => url),
            name: "record store",
            applicationName: "practice-data-records",
            settings: { ...inOrder, ...lockTimeout }
          })
        ),
        Layer.effect(
          CredentialDatabase,
          connect({
            ...options,
            url: Option.getOrElse(settings.credentialsDatabaseUrl, () => url),
            name: "credential store",
            applicationName: "practice-data-credentials",
            settings: lockTimeout
          })
        ),
        Layer.effect(
          TaskDatabase,
          connect({
            ...options,
            url,
            name: "task store",
            applicationName: "practice-data-tasks",
            // A delivery may name ten thousand invoices.
            statementTimeout: "1 minute",
            // The tasks of a worker that was killed are taken over as soon as their locks are gone.
            watchesClient: true
          })
        )
      )
      const migrated = Option.getOrElse(settings.migrate, () => false) ? Layer.effectDiscard(migrating) : Layer.empty
      return migrated.pipe(Layer.provideMerge(databases), Layer.provide(Reactivity.layer))
    }
  })
