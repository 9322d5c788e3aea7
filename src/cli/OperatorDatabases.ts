/** The databases of the commands of operators. They are those of the service, by the same variables. */
import { Effect, Layer, Option } from "effect"
import { config } from "../app/Config.ts"
import { CredentialDatabase, TaskDatabase } from "../database/Database.ts"
import * as Databases from "../database/Databases.ts"
import { requireMigrated } from "../database/Migrations.ts"
import { loadDemoData } from "../demo/Load.ts"
import { Refused } from "./Refused.ts"

const options = {
  fill: loadDemoData,
  asGuest: true,
  // Nobody else waits for a command, so a busy database has more time to let it in.
  connectTimeout: "10 seconds"
} as const

const settings = Effect.gen(function* () {
  const found = yield* config
  if (Option.isNone(found.databaseUrl) && found.dataDir === "memory") {
    return yield* new Refused({
      message: "DATA_DIR=memory keeps the database in the memory of the service, where no command can reach it."
    })
  }
  return found
})

const databases = Layer.unwrap(Effect.map(settings, (found) => Databases.layer(found, options)))

/** The databases as they are, migrated or not: migrating at the start would leave `migrate` nothing to say. */
export const asTheyAre = Layer.unwrap(
  Effect.map(settings, (found) => Databases.layer({ ...found, migrate: Option.some(false) }, options))
)

const migrated = (
  which: keyof ReturnType<typeof Databases.namesOf>,
  database: typeof TaskDatabase | typeof CredentialDatabase
) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const names = Databases.namesOf(yield* config)
      yield* requireMigrated(names[which], yield* database)
    })
  ).pipe(Layer.provideMerge(databases))

/** For commands about tasks and secrets: fails when the database of the tasks is not migrated. */
export const tasks = migrated("tasks", TaskDatabase)

/** For commands about API keys: fails when the database of the keys is not migrated. */
export const keys = migrated("credentials", CredentialDatabase)

/** For commands about both: fails when one of them is not migrated. */
export const both = Layer.merge(tasks, keys)
