/** The parts that operators' commands share: the databases of the service, and the flag `--organization`. */
import { type Context, Effect, Layer, Option } from "effect"
import { Flag } from "effect/cli"
import * as Commands from "../operations/Commands.ts"
import { readSettings } from "../operations/Settings.ts"
import { CredentialDatabase, type Database, TaskDatabase } from "../database/Database.ts"
import * as Databases from "../database/Databases.ts"
import { requireMigrated } from "../database/Migrations.ts"
import { loadDemoData } from "../app/demo/Load.ts"
import * as Output from "./Output.ts"
import { refused } from "./Usage.ts"

const databasesWith = (overrides: Partial<Databases.DatabaseSettings>) =>
  Layer.unwrap(
    Effect.gen(function* () {
      // Commands read no records.
      const settings = { ...(yield* readSettings), readDatabaseUrl: Option.none(), ...overrides }
      if (Option.isNone(settings.databaseUrl) && settings.dataDir === "memory") {
        return yield* refused(
          "DATA_DIR=memory keeps the database in the service's memory, where commands cannot reach it."
        )
      }
      // A command may wait longer for a connection of a busy database.
      return Databases.layer(settings, { fill: loadDemoData, connectTimeout: "10 seconds" })
    })
  )

const databases = databasesWith({})

/** The databases, migrated or not: migrating at the start would leave `migrate` nothing to say. */
export const asTheyAre = databasesWith({ migrate: Option.some(false) })

const migrated = <I>(database: Context.Key<I, Database>, name: keyof ReturnType<typeof Databases.databaseNames>) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      yield* requireMigrated(Databases.databaseNames(yield* readSettings)[name], yield* database)
    })
  ).pipe(Layer.provideMerge(databases))

/** The databases for commands on tasks and secrets. Fails unless that of the tasks is migrated. */
export const tasks = migrated(TaskDatabase, "tasks")

/** The databases for commands on API keys. Fails unless that of the keys is migrated. */
export const keys = migrated(CredentialDatabase, "credentials")

/** A flag with a text of one line. `what` names it in the message for another text. */
export const lineFlag = (name: string, what: string, description: string) =>
  Flag.String(name).pipe(Flag.withSchema(Commands.Line(what)), Flag.withDescription(description))

export const organization = lineFlag("organization", "the id of an organization", "Id of the organization (required)")

export const organizationFilter = (what: string) =>
  Output.optional(Flag.withDescription(organization, `Only ${what} of the organization with this id`))
