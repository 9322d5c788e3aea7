/** `organizations`, `keys`, `secrets` and `audit`: who may use the service, and the log of changes. */
import { Effect, Layer, Option, Redacted } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import * as IntakeSecrets from "../deletions/IntakeSecrets.ts"
import * as ApiKeys from "../keys/ApiKeys.ts"
import * as Commands from "../operations/Commands.ts"
import * as Operators from "./Operators.ts"
import * as Output from "./Output.ts"
import { documented, Refused } from "./Usage.ts"

const createOrganization = Command.make(
  "create",
  {
    id: Argument.String("id").pipe(
      Argument.withSchema(Commands.Line("the id of an organization")),
      Argument.withDescription("Id of the organization, as its records have it")
    ),
    name: Flag.String("name").pipe(
      Flag.withSchema(Commands.Line("the name of the organization")),
      Flag.withDescription("Its name, which its API shows (required)")
    )
  },
  Effect.fn(function* (given) {
    if (!(yield* Commands.createOrganization(yield* Commands.commandLine, given))) {
      return yield* new Refused({ message: `There is an organization ${given.id} already. Nothing is changed.` })
    }
    yield* Output.print(`Created ${given.id}`)
  })
).pipe(
  documented("Create the record of an organization", [
    ["practice-data organizations create org_1 --name 'Happy Paws'", "Before its first API key"]
  ]),
  Command.provide(Operators.tasks)
)

export const organizations = Command.make("organizations").pipe(
  Command.withDescription("Organizations"),
  Command.withSubcommands([createOrganization])
)

/** Lists credentials, without the credentials themselves. */
const listOf = <Row extends Readonly<Record<string, unknown>>, E, R>(
  group: "keys" | "secrets",
  fields: ReadonlyArray<keyof Row & string>,
  read: (organization: string | undefined) => Effect.Effect<ReadonlyArray<Row>, E, R>
) =>
  Command.make(
    "list",
    { organization: Operators.ofOne(group), json: Output.json },
    Effect.fn(function* ({ json, organization }) {
      yield* Output.rows(json, yield* read(Option.getOrUndefined(organization)), fields)
    })
  ).pipe(
    documented(`List ${group === "keys" ? "API keys" : "signing secrets"}, without the ${group} themselves`, [
      [`practice-data ${group} list`],
      [`practice-data ${group} list --organization org_1 --json`]
    ])
  )

/** Revokes a credential, and prints what follows. */
const revokeOf = <A, E, R>(
  one: "key" | "secret",
  example: string,
  revoke: (actor: Commands.Actor, id: string) => Effect.Effect<Option.Option<A>, E, R>,
  follows: (revoked: A) => string
) =>
  Command.make(
    "revoke",
    { id: Argument.String("id").pipe(Argument.withDescription(`Id of the ${one}, as \`${one}s list\` shows it`)) },
    Effect.fn(function* ({ id }) {
      const revoked = yield* revoke(yield* Commands.commandLine, id)
      if (Option.isNone(revoked))
        return yield* new Refused({ message: `There is no ${one} ${id} that could be revoked.` })
      yield* Output.print(`Revoked ${id}${follows(revoked.value)}`)
    })
  ).pipe(
    documented(`Revoke ${one === "key" ? "an API key" : "a signing secret"}; it stops working at once`, [
      [`practice-data ${one}s revoke ${example}`]
    ])
  )

/** Prints a credential that was made: as a record, or alone. */
const printMade = Effect.fnUntraced(function* (
  isJson: boolean,
  kind: "key" | "secret",
  made: { readonly id: string; readonly organization_id: string; readonly name?: string },
  credential: Redacted.Redacted
) {
  const text = Redacted.value(credential)
  yield* isJson ? Output.record({ ...made, [kind]: text }) : Output.print(text)
  yield* Output.note(`Created ${made.id} for ${made.organization_id}. The ${kind} is shown once.`)
  yield* Operators.noteIfUnknown(made.organization_id)
})

const createKey = Command.make(
  "create",
  {
    organization: Operators.organization,
    name: Flag.String("name").pipe(
      Flag.withSchema(Commands.Line("what the key is for")),
      Flag.withDescription("What the key is for (required)")
    ),
    json: Output.json
  },
  Effect.fn(function* ({ json, name, organization }) {
    const { id, key } = yield* Commands.createKey(yield* Commands.commandLine, { name, organization })
    yield* printMade(json, "key", { id, organization_id: organization, name }, key)
  })
).pipe(
  documented("Create an API key for an organization. Standard output has the key alone.", [
    ["practice-data keys create --organization org_1 --name 'Warehouse sync'"],
    ["KEY=$(practice-data keys create --organization org_1 --name CI)", "Keep the key in a variable"]
  ])
)

export const keys = Command.make("keys").pipe(
  Command.withDescription("API keys"),
  Command.withSubcommands([
    createKey.pipe(Command.provide(Operators.keys)),
    listOf(
      "keys",
      ["id", "organization_id", "prefix", "name", "created_at", "last_used_on", "revoked_at"],
      ApiKeys.list
    ).pipe(Command.provide(Operators.keys)),
    revokeOf("key", "key_3nVQ0aXbT1Zk", Commands.revokeKey, () => "").pipe(Command.provide(Operators.keys))
  ])
)

const addSecret = Command.make(
  "add",
  { organization: Operators.organization, json: Output.json },
  Effect.fn(function* ({ json, organization }) {
    const { id, secret } = yield* Commands.addSecret(yield* Commands.commandLine, organization)
    yield* printMade(json, "secret", { id, organization_id: organization }, secret)
    yield* Output.note(`From now on deliveries of ${organization} must be signed.`)
  })
).pipe(
  documented(
    "Create a signing secret for an organization, beside those that it has. Standard output has the secret alone.",
    [["practice-data secrets add --organization org_1"]]
  )
)

export const secrets = Command.make("secrets").pipe(
  Command.withDescription("Signing secrets of the intake"),
  Command.withSubcommands([
    addSecret.pipe(Command.provide(Operators.tasks)),
    listOf("secrets", ["id", "organization_id", "created_at", "revoked_at"], IntakeSecrets.list).pipe(
      Command.provide(Operators.tasks)
    ),
    revokeOf("secret", "secret_0a1b2c3d4e5f", Commands.revokeSecret, ({ left, organization }) =>
      left > 0
        ? ""
        : `. ${organization} has no secret left: its deliveries need not be signed, unless REQUIRE_SIGNATURES is set.`
    ).pipe(Command.provide(Operators.tasks))
  ])
)

const listChanges = Command.make(
  "list",
  { limit: Output.limit("entries"), json: Output.json },
  Effect.fn(function* ({ json, limit }) {
    const fields = ["at", "actor", "source", "action", "result", "target", "organization_id"]
    yield* Output.rows(json, yield* Commands.auditLog(limit), fields)
  })
).pipe(
  documented("List what operators changed by commands and on their page, the latest first", [
    ["practice-data audit list --limit 10"]
  ])
)

export const audit = Command.make("audit").pipe(
  Command.withDescription("What operators changed: API keys, signing secrets and replayed deletions"),
  Command.withSubcommands([listChanges.pipe(Command.provide(Layer.merge(Operators.tasks, Operators.keys)))])
)
