/** `keys`, `secrets` and `audit`: who may use the service, and the log of changes. */
import { Array, Effect, Layer, Option, Redacted, Stdio, Stream } from "effect"
import { Argument, Command } from "effect/cli"
import { TaskDatabase } from "../database/Database.ts"
import * as IntakeSecrets from "../deletions/IntakeSecrets.ts"
import * as ApiKeys from "../keys/ApiKeys.ts"
import * as Commands from "../operations/Commands.ts"
import * as Operators from "./Operators.ts"
import * as Output from "./Output.ts"
import { command, refused } from "./Usage.ts"

const listOf = <Row extends Readonly<Record<string, unknown>>, E, R, A, LE, LR>(
  group: "keys" | "secrets",
  services: Layer.Layer<A, LE, LR>,
  fields: ReadonlyArray<keyof Row & string>,
  read: (organization: string | undefined) => Effect.Effect<ReadonlyArray<Row>, E, R>,
  notesOf: (rows: ReadonlyArray<Row>) => ReadonlyArray<string> = () => []
) =>
  command(`${group} list`, services, {
    description: `List ${group === "keys" ? "API keys" : "signing secrets"}, without their values`,
    examples: [[`practice-data ${group} list`], [`practice-data ${group} list --organization org_1 --json`]],
    flags: { organization: Operators.ofOne(group), json: Output.json }
  })(function* ({ json, organization }) {
    const found = yield* read(organization)
    yield* Output.rows(json, found, fields)
    yield* Effect.forEach(notesOf(found), Output.note)
  })

const revokeOf = <A, E, R, L, LE, LR>(
  one: "key" | "secret",
  services: Layer.Layer<L, LE, LR>,
  example: string,
  revoke: (actor: Commands.Actor, id: string) => Effect.Effect<Option.Option<A>, E, R>,
  follows: (revoked: A) => string
) =>
  command(`${one}s revoke`, services, {
    description: `Revoke ${one === "key" ? "an API key" : "a signing secret"}; it stops working at once`,
    examples: [[`practice-data ${one}s revoke ${example}`]],
    flags: {
      id: Argument.String("id").pipe(Argument.withDescription(`Id of the ${one}, as \`${one}s list\` shows it`))
    }
  })(function* ({ id }) {
    const revoked = yield* revoke(yield* Commands.commandLine, id)
    if (Option.isNone(revoked)) return yield* refused(`No valid ${one} ${id} to revoke.`)
    yield* Output.print(`Revoked ${id}${follows(revoked.value)}`)
  })

/** Notes that an organization has no row, as a misspelled one. */
const noteUnknown = Effect.fnUntraced(function* (owner: string) {
  const sql = yield* TaskDatabase
  // It decides nothing, so that a database that does not respond is no failure.
  const found = yield* Effect.option(sql`select 1 from organizations where organization_id = ${owner}`)
  if (Option.exists(found, ({ length }) => length === 0)) {
    yield* Output.note(
      `No organization ${owner} yet. If the id is correct, run: organizations create ${owner} --name NAME`
    )
  }
})

const printMade = Effect.fnUntraced(function* (
  isJson: boolean,
  kind: "key" | "secret",
  made: { readonly id: string; readonly organization_id: string; readonly name?: string },
  credential: Redacted.Redacted
) {
  const text = Redacted.value(credential)
  yield* isJson ? Output.record({ ...made, [kind]: text }) : Output.print(text)
  yield* Output.note(`Created ${made.id} for ${made.organization_id}. The ${kind} is shown once.`)
  yield* noteUnknown(made.organization_id)
})

const createKey = command("keys create", Operators.keys, {
  description: "Create an API key for an organization. Standard output contains only the key.",
  examples: [
    ["practice-data keys create --organization org_1 --name 'Warehouse sync'"],
    ["KEY=$(practice-data keys create --organization org_1 --name CI)", "Store the key in a variable"]
  ],
  flags: {
    organization: Operators.organization,
    name: Operators.line("name", "what the key is for", "Purpose of the key (required)"),
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

/** Reads a secret from standard input: others on the machine see arguments. */
const readSecret = Effect.gen(function* () {
  const { stdin } = yield* Stdio.Stdio
  const noSecret = refused(
    "Standard input is not a signing secret: expected only whsec_ followed by 24 to 75 bytes in base64."
  )
  const text = yield* Effect.mapError(Stream.mkString(Stream.decodeText(stdin)), () => noSecret)
  return yield* Effect.mapError(Effect.fromOption(IntakeSecrets.parse(text)), () => noSecret)
})

const addSecret = command("secrets add", Operators.tasks, {
  description: `Create a signing secret for an organization, in addition to existing ones. Standard output contains only the secret.

With --import, read the sender's own secret, such as one made by Svix, from standard input.`,
  examples: [
    ["practice-data secrets add --organization org_1"],
    [
      `printf %s "$SECRET" | practice-data secrets add --organization org_1 --import`,
      "Import the sender's secret from a variable"
    ]
  ],
  flags: {
    organization: Operators.organization,
    import: Output.flag("import", "Import the sender's secret from standard input"),
    json: Output.json
  }
})(function* ({ import: isImport, json, organization }) {
  const actor = yield* Commands.commandLine
  if (isImport) {
    const { id, isNew } = yield* Commands.importSecret(actor, organization, yield* readSecret)
    const imported = isNew ? `Imported ${id}` : `This secret already exists as ${id}`
    yield* json ? Output.record({ id, organization_id: organization }) : Output.print(imported)
    yield* noteUnknown(organization)
  } else {
    const { id, secret } = yield* Commands.addSecret(actor, organization)
    yield* printMade(json, "secret", { id, organization_id: organization }, secret)
  }
  yield* Output.note(`From now on deliveries of ${organization} must be signed.`)
})

/** The way back to unsigned deliveries. */
const refusedNote = (organization: string) =>
  `${organization} has no valid secret: its deliveries get 401. To accept unsigned ones, run: secrets allow-unsigned --organization ${organization}`

const allowUnsigned = command("secrets allow-unsigned", Operators.tasks, {
  description:
    "Accept unsigned deliveries of an organization whose secrets are all revoked, from anyone who reaches the intake. Deletes the revoked secrets.",
  examples: [["practice-data secrets allow-unsigned --organization org_1"]],
  flags: { organization: Operators.organization }
})(function* ({ organization }) {
  if (yield* Commands.allowUnsigned(yield* Commands.commandLine, organization)) {
    return yield* Output.print(`${organization} no longer has to sign its deliveries, unless REQUIRE_SIGNATURES is set`)
  }
  return yield* refused(`${organization} has a valid secret, or never had one. Nothing was changed.`)
})

export const secrets = Command.make("secrets").pipe(
  Command.withDescription("Signing secrets of the intake"),
  Command.withSubcommands([
    addSecret,
    listOf(
      "secrets",
      Operators.tasks,
      ["id", "organization_id", "created_at", "revoked_at"],
      IntakeSecrets.list,
      (found) => {
        const valid = new Set(found.flatMap((row) => (row.revoked_at === null ? [row.organization_id] : [])))
        return Array.dedupe(found.map((row) => row.organization_id)).flatMap((owner) =>
          valid.has(owner) ? [] : [refusedNote(owner)]
        )
      }
    ),
    revokeOf("secret", Operators.tasks, "secret_0a1b2c3d4e5f", Commands.revokeSecret, ({ left, organization }) =>
      left > 0 ? "" : `. ${refusedNote(organization)}`
    ),
    allowUnsigned
  ])
)

const listChanges = command("audit list", Layer.merge(Operators.tasks, Operators.keys), {
  description: "List changes by operators, from commands and their page, newest first",
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
