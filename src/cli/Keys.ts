/** `keys`: API keys. */
import { Effect, Option, Redacted } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import * as ApiKeys from "../keys/ApiKeys.ts"
import { commandLine } from "../operations/AuditLog.ts"
import * as Commands from "../operations/Commands.ts"
import { invocation } from "../process/Package.ts"
import * as OperatorDatabases from "./OperatorDatabases.ts"
import { Line, noteIfUnknown, ofOne, organization } from "./Organization.ts"
import * as Output from "./Output.ts"
import { Refused } from "./Refused.ts"
import { type Column, second } from "./Table.ts"

const create = Command.make(
  "create",
  {
    organization,
    name: Flag.String("name").pipe(
      Flag.withSchema(Line("what the key is for")),
      Flag.withDescription("What the key is for (required)")
    ),
    json: Output.json
  },
  Effect.fn(function* ({ json, ...options }) {
    const { id, key } = yield* Commands.createKey(yield* commandLine, options)
    const text = Redacted.value(key)
    if (json) yield* Output.record({ id, organization_id: options.organization, name: options.name, key: text })
    else yield* Output.print(text)
    yield* Output.note(`Created ${id} for ${options.organization}. The key is shown once, and stored nowhere.`)
    yield* noteIfUnknown(options.organization, "The key works, but /organization/get is 404 until there is.")
  })
).pipe(
  Command.withDescription("Create an API key for an organization. Standard output has the key alone."),
  Command.withShortDescription("Create an API key for an organization"),
  Command.withExamples([
    { command: invocation("keys create --organization org_1 --name 'Warehouse sync'") },
    {
      command: `KEY=$(${invocation("keys create --organization org_1 --name CI").replace("npm run", "npm run --silent")})`,
      description: "Keep the key in a variable"
    }
  ])
)

const columns: ReadonlyArray<Column<ApiKeys.ApiKey>> = [
  { title: "ID", value: ({ id }) => id },
  { title: "ORGANIZATION", value: ({ organization_id }) => organization_id },
  { title: "KEY", value: ({ prefix }) => `${prefix}…` },
  { title: "NAME", value: ({ name }) => name },
  { title: "CREATED (UTC)", value: ({ created_at }) => second(created_at) },
  { title: "LAST USED", value: ({ last_used_on }) => last_used_on },
  { title: "REVOKED (UTC)", value: ({ revoked_at }) => second(revoked_at) }
]

const list = Command.make(
  "list",
  { organization: ofOne("keys"), json: Output.json },
  Effect.fn(function* (options) {
    const owner = Option.getOrUndefined(options.organization)
    yield* Output.rows(yield* ApiKeys.list(owner), {
      columns,
      json: options.json,
      none: owner === undefined ? "There is no API key." : `${owner} has no API key.`
    })
  })
).pipe(
  Command.withDescription("List API keys, without the keys themselves"),
  Command.withExamples([
    { command: invocation("keys list") },
    { command: invocation("keys list --organization org_1 --json") }
  ])
)

const revoke = Command.make(
  "revoke",
  { id: Argument.String("id").pipe(Argument.withDescription("Id of the key, as `keys list` shows it")) },
  Effect.fn(function* ({ id }) {
    const revoked = yield* Commands.revokeKey(yield* commandLine, id)
    if (Option.isNone(revoked)) return yield* new Refused({ message: `There is no key ${id} that could be revoked.` })
    yield* Output.print(`Revoked ${id}`)
  })
).pipe(
  Command.withDescription("Revoke an API key; it stops working at once"),
  Command.withExamples([{ command: invocation("keys revoke key_3nVQ0aXbT1Zk") }])
)

/** `keys`. */
export const keys = Command.make("keys").pipe(
  Command.withDescription("API keys"),
  Command.withSubcommands([create, list, revoke]),
  Command.provide(OperatorDatabases.keys)
)
