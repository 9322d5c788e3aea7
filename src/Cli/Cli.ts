/** The commands of operators. They read the same configuration as the service. */
import { Console, Effect, Layer, Option, Redacted } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { config } from "../Config.ts"
import { CredentialDatabase, TaskDatabase } from "../Database/Database.ts"
import * as Databases from "../Database/Databases.ts"
import { migrate } from "../Database/Migrations.ts"
import * as ApiKeys from "../Organization/ApiKeys.ts"
import { secrets } from "./Secrets.ts"
import { tasks } from "./Tasks.ts"

const databases = Layer.unwrap(Effect.map(config, Databases.layer))

const migrateCommand = Command.make(
  "migrate",
  {},
  Effect.fn(function* () {
    const applied = [...(yield* migrate(yield* TaskDatabase)), ...(yield* migrate(yield* CredentialDatabase))].map(
      ([id, name]) => `${id}_${name}`
    )
    yield* Console.log(applied.length === 0 ? "Nothing to apply" : `Applied ${applied.join(", ")}`)
  }, Effect.provide(databases))
).pipe(Command.withDescription("Apply the migrations that are missing"))

const organization = Flag.String("organization").pipe(Flag.withDescription("Id of the organization"))

const createKey = Command.make(
  "create",
  { organization, name: Flag.String("name").pipe(Flag.withDescription("What the key is for")) },
  Effect.fn(function* (options) {
    const { id, key } = yield* ApiKeys.create(options)
    yield* Console.log(`${id}\n${Redacted.value(key)}\nThis key is shown once, and stored nowhere.`)
  }, Effect.provide(databases))
).pipe(Command.withDescription("Make an API key for an organization"))

const listKeys = Command.make(
  "list",
  { organization: Flag.optional(organization) },
  Effect.fn(function* (options) {
    const keys = yield* ApiKeys.list(Option.getOrUndefined(options.organization))
    yield* Console.table(keys)
  }, Effect.provide(databases))
).pipe(Command.withDescription("List API keys, without the keys themselves"))

const revokeKey = Command.make(
  "revoke",
  { id: Argument.String("id").pipe(Argument.withDescription("Id of the key, as `keys list` shows it")) },
  Effect.fn(function* ({ id }) {
    const revoked = yield* ApiKeys.revoke(id)
    yield* Console.log(revoked ? `Revoked ${id}` : `No key ${id} that could be revoked`)
  }, Effect.provide(databases))
).pipe(Command.withDescription("Revoke an API key; it stops working at once"))

const keys = Command.make("keys").pipe(
  Command.withDescription("API keys"),
  Command.withSubcommands([createKey, listKeys, revokeKey])
)

/** All commands. */
export const command = Command.make("practice-data").pipe(
  Command.withDescription("Operate the practice data service"),
  Command.withSubcommands([
    migrateCommand,
    keys,
    Command.provide(tasks, databases),
    Command.provide(secrets, databases)
  ])
)
