/** `keys`, `secrets` and `audit`: who may use the service, and the log of changes. */
import { Effect, Layer, Option, Redacted } from "effect"
import { Argument, Command } from "effect/cli"
import { TaskDatabase } from "../database/Database.ts"
import * as IntakeSecrets from "../deletions/IntakeSecrets.ts"
import * as ApiKeys from "../keys/ApiKeys.ts"
import * as Commands from "../operations/Commands.ts"
import * as Operators from "./Operators.ts"
import * as Output from "./Output.ts"
import { command, Refused } from "./Usage.ts"

/** Lists credentials, without the credentials themselves. */
const listOf = <Row extends Readonly<Record<string, unknown>>, E, R, A, LE, LR>(
  group: "keys" | "secrets",
  services: Layer.Layer<A, LE, LR>,
  fields: ReadonlyArray<keyof Row & string>,
  read: (organization: string | undefined) => Effect.Effect<ReadonlyArray<Row>, E, R>
) =>
  command("list", services, {
    description: `List ${group === "keys" ? "API keys" : "signing secrets"}, without the ${group} themselves`,
    examples: [[`practice-data ${group} list`], [`practice-data ${group} list --organization org_1 --json`]],
    flags: { organization: Operators.ofOne(group), json: Output.json }
  })(function* ({ json, organization }) {
    yield* Output.rows(json, yield* read(Option.getOrUndefined(organization)), fields)
  })

/** Revokes a credential, and prints what follows. */
const revokeOf = <A, E, R, L, LE, LR>(
  one: "key" | "secret",
  services: Layer.Layer<L, LE, LR>,
  example: string,
  revoke: (actor: Commands.Actor, id: string) => Effect.Effect<Option.Option<A>, E, R>,
  follows: (revoked: A) => string
) =>
  command("revoke", services, {
    description: `Revoke ${one === "key" ? "an API key" : "a signing secret"}; it stops working at once`,
    examples: [[`practice-data ${one}s revoke ${example}`]],
    flags: {
      id: Argument.String("id").pipe(Argument.withDescription(`Id of the ${one}, as \`${one}s list\` shows it`))
    }
  })(function* ({ id }) {
    const revoked = yield* revoke(yield* Commands.commandLine, id)
    if (Option.isNone(revoked))
      return yield* new Refused({ message: `There is no ${one} ${id} that could be revoked.` })
    yield* Output.print(`Revoked ${id}${follows(revoked.value)}`)
  })

/** Prints a credential that was made: as a record, or alone. Notes that its organization has no row, as a misspelled one. */
const printMade = Effect.fnUntraced(function* (
  isJson: boolean,
  kind: "key" | "secret",
  made: { readonly id: string; readonly organization_id: string; readonly name?: string },
  credential: Redacted.Redacted
) {
  const text = Redacted.value(credential)
  yield* isJson ? Output.record({ ...made, [kind]: text }) : Output.print(text)
  const owner = made.organization_id
  yield* Output.note(`Created ${made.id} for ${owner}. The ${kind} is shown once.`)
  const sql = yield* TaskDatabase
  // It decides nothing, so that a database that does not respond is no failure.
  const found = yield* Effect.option(sql`select 1 from organizations where organization_id = ${owner}`)
  if (Option.exists(found, ({ length }) => length === 0)) {
    yield* Output.note(
      `There is no organization ${owner} yet. If its id is right, run: organizations create ${owner} --name NAME`
    )
  }
})

const createKey = command("create", Operators.keys, {
  description: "Create an API key for an organization. Standard output has the key alone.",
  examples: [
    ["practice-data keys create --organization org_1 --name 'Warehouse sync'"],
    ["KEY=$(practice-data keys create --organization org_1 --name CI)", "Keep the key in a variable"]
  ],
  flags: {
    organization: Operators.organization,
    name: Operators.line("name", "what the key is for", "What the key is for (required)"),
    json: Output.json
  }
})(function* ({ json, name, organization }) {
  const { id, key } = yield* Commands.createKey(yield* Commands.commandLine, { name, organization })
  yield* printMade(json, "key", { id, organization_id: organization, name }, key)
})

export const keys = Command.make("keys").pipe(
  Command.withDescription("API keys"),
  Command.withSubcommands([
    createKey,
    listOf(
      "keys",
      Operators.keys,
      ["id", "organization_id", "prefix", "name", "created_at", "last_used_on", "revoked_at"],
      ApiKeys.list
    ),
    revokeOf("key", Operators.keys, "key_3nVQ0aXbT1Zk", Commands.revokeKey, () => "")
  ])
)

const addSecret = command("add", Operators.tasks, {
  description:
    "Create a signing secret for an organization, beside those that it has. Standard output has the secret alone.",
  examples: [["practice-data secrets add --organization org_1"]],
  flags: { organization: Operators.organization, json: Output.json }
})(function* ({ json, organization }) {
  const { id, secret } = yield* Commands.addSecret(yield* Commands.commandLine, organization)
  yield* printMade(json, "secret", { id, organization_id: organization }, secret)
  yield* Output.note(`From now on deliveries of ${organization} must be signed.`)
})

export const secrets = Command.make("secrets").pipe(
  Command.withDescription("Signing secrets of the intake"),
  Command.withSubcommands([
    addSecret,
    listOf("secrets", Operators.tasks, ["id", "organization_id", "created_at", "revoked_at"], IntakeSecrets.list),
    revokeOf("secret", Operators.tasks, "secret_0a1b2c3d4e5f", Commands.revokeSecret, ({ left, organization }) =>
      left > 0
        ? ""
        : `. ${organization} has no secret left: its deliveries need not be signed, unless REQUIRE_SIGNATURES is set.`
    )
  ])
)

const listChanges = command("list", Layer.merge(Operators.tasks, Operators.keys), {
  description: "List what operators changed by commands and on their page, the latest first",
  examples: [["practice-data audit list --limit 10"]],
  flags: { limit: Output.limit("entries"), json: Output.json }
})(function* ({ json, limit }) {
  const fields = ["at", "actor", "source", "action", "result", "target", "organization_id"]
  yield* Output.rows(json, yield* Commands.auditLog(limit), fields)
})

export const audit = Command.make("audit").pipe(
  Command.withDescription("Changes by operators: organizations, API keys, signing secrets and replayed deletions"),
  Command.withSubcommands([listChanges])
)
