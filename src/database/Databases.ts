/** The databases that the configuration names. */
import { type Duration, Effect, Layer, Option, type Redacted } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import type { SqlError } from "effect/sql/SqlError"
import type { PgClient } from "@effect/sql-pg"
import type { Pool } from "../observability/Metrics.ts"
import * as Loop from "../observability/Loop.ts"
import { step } from "../process/Printed.ts"
import * as Database from "./Database.ts"
import * as Embedded from "./Embedded.ts"
import { isMigrated, migrate, untilMigrated } from "./Migrations.ts"

/** The part of the configuration that names the databases. */
export interface DatabaseSettings {
  readonly databaseUrl: Option.Option<Redacted.Redacted>
  readonly readDatabaseUrl: Option.Option<Redacted.Redacted>
  readonly credentialsDatabaseUrl: Option.Option<Redacted.Redacted>
  readonly dataDir: string
  readonly migrate: Option.Option<boolean>
  readonly poolSize: number
  /** True if one connection for reads is the lane's. */
  readonly lane?: boolean
  /** The roles of the process. Only the data API needs the keys. */
  readonly roles: ReadonlyArray<string>
}

export interface LayerOptions {
  /** Fills a new embedded database. No other is ever filled. False if it has data. */
  readonly fill: (sql: PgClient.PgClient) => Effect.Effect<boolean, SqlError>
  /** The time that a connection to a Postgres may take to open. */
  readonly connectTimeout?: Duration.Input
}

const embedded = Effect.fnUntraced(function* (settings: DatabaseSettings, { fill }: LayerOptions) {
  const sql = yield* Embedded.connect(settings.dataDir)
  const isMigrating = Option.getOrElse(settings.migrate, () => true)
  if (isMigrating) yield* step("2 of 3: the tables", migrate(sql), (applied) => applied.length > 0)
  if (yield* isMigrated(sql)) yield* step("3 of 3: the demo data", fill(sql), (isFilled) => isFilled)
  return Database.layerShared(sql)
})

const needsKeys = ({ roles }: DatabaseSettings) => roles.includes("data-api")

/** The names of the databases that are migrated, for the beginning of a sentence. */
export const databaseNames = ({ credentialsDatabaseUrl, databaseUrl }: DatabaseSettings) => {
  const tasks = Option.isNone(databaseUrl) ? "The embedded database" : "The database of DATABASE_URL"
  const isSeparate = Option.isSome(databaseUrl) && Option.isSome(credentialsDatabaseUrl)
  return { tasks, credentials: isSeparate ? "The database of CREDENTIALS_DATABASE_URL" : tasks }
}

/** The pools of connections of a process. */
export const poolOptions = (settings: DatabaseSettings, url: Redacted.Redacted, connectTimeout?: Duration.Input) => {
  const makeOptions = (pool: Pool, name: string, given: Partial<Database.PoolOptions>): Database.PoolOptions => ({
    url,
    name,
    pool,
    applicationName: `practice-data-${pool}`,
    maxConnections: settings.poolSize,
    connectTimeout,
    statementTimeout: "5 seconds",
    ...given
  })
  const reads = {
    isPipelined: settings.lane === true,
    settings: { ...Database.inOrder, ...Database.lockTimeout }
  }
  return {
    records: makeOptions("records", "record store", {
      ...reads,
      url: Option.getOrElse(settings.readDatabaseUrl, () => url)
    }),
    changes: makeOptions("changes", "record store", reads),
    credentials: makeOptions("credentials", "credential store", {
      url: Option.getOrElse(settings.credentialsDatabaseUrl, () => url),
      settings: Database.lockTimeout
    }),
    tasks: makeOptions("tasks", "task store", {
      // A delivery may name 3,000 invoices with many lines each.
      statementTimeout: "1 minute",
      // The server ends the statement of a worker that was killed. Its tasks are taken over once its locks are gone.
      // Plans are not compiled: that took longer than a task.
      settings: { client_connection_check_interval: "500", jit: "off" }
    })
  }
}

const pooled = Effect.fnUntraced(function* (
  settings: DatabaseSettings,
  url: Redacted.Redacted,
  { connectTimeout }: LayerOptions
) {
  const pools = poolOptions(settings, url, connectTimeout)
  const isApi = needsKeys(settings)
  const tasks = yield* Database.connect(pools.tasks)
  // Without the data API, only operators look at records and keys.
  const records = isApi ? yield* Database.connect(pools.records) : tasks
  const changes = isApi && Option.isSome(settings.readDatabaseUrl) ? yield* Database.connect(pools.changes) : records
  const hasKeys = isApi || Option.isSome(settings.credentialsDatabaseUrl)
  const credentials = hasKeys ? yield* Database.connect(pools.credentials) : tasks
  if (Option.getOrElse(settings.migrate, () => false)) {
    // The database of the records may be a replica, which gets the migrations from this one.
    yield* migrate(tasks)
    if (isApi) yield* migrate(credentials)
  }
  return Database.layerWith({ records, changes, credentials, tasks })
})

/** The databases of the configuration, or the embedded one. */
export const layer = (settings: DatabaseSettings, options: LayerOptions) =>
  Option.match(settings.databaseUrl, {
    onNone: () => Layer.unwrap(embedded(settings, options)),
    onSome: (url) => Layer.unwrap(pooled(settings, url, options))
  }).pipe(Layer.provide(Reactivity.layer))

/**
 * Builds a layer once the task database is migrated, without delaying anything else. Warns once about each database that
 * lacks migrations.
 */
export const afterMigration = <E, R>(settings: DatabaseSettings, worker: Layer.Layer<never, E, R>) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const names = databaseNames(settings)
      const migrated = untilMigrated(names.tasks, yield* Database.TaskDatabase)
      const started = Effect.andThen(migrated, Layer.buildWithScope(worker, scope))
      yield* Effect.forkScoped(Loop.restarting("The start of the worker", started))
      if (needsKeys(settings) && names.credentials !== names.tasks) {
        yield* Effect.forkScoped(untilMigrated(names.credentials, yield* Database.CredentialDatabase))
      }
    })
  )
