/** The commands of operators. They read the same configuration as the service. */
import { Console, Effect, Layer, Option, Redacted } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { config } from "../Config.ts"
import { CredentialDatabase, TaskDatabase } from "../database/Database.ts"
import { beginAnew } from "../database/ChangeOrder.ts"
import * as Databases from "../database/Databases.ts"
import { loadDemoData } from "../demo/Load.ts"
import { migrate, requireMigrated } from "../database/Migrations.ts"
import * as Failure from "../process/Failure.ts"
import { version } from "../process/Version.ts"
import * as ApiKeys from "../keys/ApiKeys.ts"
import { Line, noteIfUnknown, organization } from "./Organization.ts"
import { Refused } from "./Refused.ts"
import { secrets } from "./Secrets.ts"
import { tasks } from "./Tasks.ts"

// Nobody else waits for a command, so a busy database has more time to let it in.
const databaseOptions = { fill: loadDemoData, connectTimeout: "10 seconds" } as const

const databases = Layer.unwrap(Effect.map(config, (settings) => Databases.layer(settings, databaseOptions)))

/** The databases of a command that needs one of them migrated. */
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

// Migrating at the start would leave the command nothing to say.
const asTheyAre = Layer.unwrap(
  Effect.map(config, (settings) => Databases.layer({ ...settings, migrate: Option.some(false) }, databaseOptions))
)

const migrateCommand = Command.make(
  "migrate",
  {},
  Effect.fn(function* () {
    const ofTasks = yield* migrate(yield* TaskDatabase)
    const ofCredentials = yield* migrate(yield* CredentialDatabase)
    const applied = [...ofTasks, ...ofCredentials]
    yield* Console.log(applied.length === 0 ? "Nothing to apply" : `Applied ${applied.join(", ")}`)
    const { begun, waiting } = yield* beginAnew(yield* TaskDatabase)
    if (begun.length > 0) {
      yield* Console.log(`Changes begin anew, and their readers start again: ${begun.join(", ")}`)
    }
    if (waiting.length > 0) {
      yield* Console.log(`Changes cannot begin anew yet, and the service tries again: ${waiting.join(", ")}`)
    }
  }, Effect.provide(asTheyAre))
).pipe(
  Command.withDescription("Apply the migrations that are missing, and begin the order of changes anew after a restore")
)

const keyDatabases = migrated("credentials", CredentialDatabase)
const taskDatabases = migrated("tasks", TaskDatabase)

const createKey = Command.make(
  "create",
  {
    organization,
    name: Flag.String("name").pipe(
      Flag.withSchema(Line("what the key is for")),
      Flag.withDescription("What the key is for")
    )
  },
  Effect.fn(function* (options) {
    const { id, key } = yield* ApiKeys.create(options)
    yield* Console.log(`${id}\n${Redacted.value(key)}\nThis key is shown once, and stored nowhere.`)
    yield* noteIfUnknown(options.organization, "The key works, but /organization/get is 404 until there is.")
  }, Effect.provide(keyDatabases))
).pipe(Command.withDescription("Create an API key for an organization"))

const listKeys = Command.make(
  "list",
  { organization: Flag.optional(organization) },
  Effect.fn(function* (options) {
    const keys = yield* ApiKeys.list(Option.getOrUndefined(options.organization))
    yield* Console.table(keys)
  }, Effect.provide(keyDatabases))
).pipe(Command.withDescription("List API keys, without the keys themselves"))

const revokeKey = Command.make(
  "revoke",
  { id: Argument.String("id").pipe(Argument.withDescription("Id of the key, as `keys list` shows it")) },
  Effect.fn(function* ({ id }) {
    const isRevoked = yield* ApiKeys.revoke(id)
    if (!isRevoked) return yield* new Refused({ message: `There is no key ${id} that could be revoked.` })
    yield* Console.log(`Revoked ${id}`)
  }, Effect.provide(keyDatabases))
).pipe(Command.withDescription("Revoke an API key; it stops working at once"))

const keys = Command.make("keys").pipe(
  Command.withDescription("API keys"),
  Command.withSubcommands([createKey, listKeys, revokeKey])
)

const command = Command.make("practice-data").pipe(
  Command.withDescription("Operate the practice data service, with the same variables that configure it"),
  Command.withExamples([
    { command: "npm run cli -- migrate", description: "Prepare the Postgres of DATABASE_URL" },
    {
      command: "npm run cli -- keys create --organization org_1 --name 'Warehouse sync'",
      description: "Let an organization read"
    },
    { command: "npm run cli -- tasks list --state dead", description: "See which deletions need a look" }
  ]),
  Command.withSubcommands([
    migrateCommand,
    keys,
    Command.provide(tasks, taskDatabases),
    Command.provide(secrets, taskDatabases)
  ])
)

/** Runs the command that the arguments name. Says on standard error why it fails. */
export const run = (args: ReadonlyArray<string>) =>
  Command.runWith(command, { version })(args).pipe(
    Effect.tapErrorTag(
      ["ConfigError", "EmbeddedDatabaseError", "MigrationError", "NotMigrated", "Refused", "SqlError"],
      Failure.report
    ),
    // A row that does not decode.
    Effect.tapErrorTag("SchemaError", ({ message }) => Console.error(message))
  )
