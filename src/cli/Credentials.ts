/** `keys` and `secrets`: API keys, and the signing secrets of the intake. */
import { Effect, Option, Redacted } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import * as IntakeSecrets from "../deletions/IntakeSecrets.ts"
import * as ApiKeys from "../keys/ApiKeys.ts"
import { commandLine } from "../operations/AuditLog.ts"
import * as Commands from "../operations/Commands.ts"
import * as Operators from "./Operators.ts"
import * as Output from "./Output.ts"
import { documented, Refused } from "./Usage.ts"

/** Lists credentials, without the credentials themselves. */
const listOf = <Row, E, R>(
  group: string,
  one: string,
  columns: Output.Columns<Row>,
  read: (organization: string | undefined) => Effect.Effect<ReadonlyArray<Row>, E, R>
) =>
  Command.make(
    "list",
    { organization: Operators.ofOne(group), json: Output.json },
    Effect.fn(function* (options) {
      const owner = Option.getOrUndefined(options.organization)
      yield* Output.rows(yield* read(owner), {
        columns,
        json: options.json,
        none: owner === undefined ? `There is no ${one}.` : `${owner} has no ${one}.`
      })
    })
  ).pipe(
    documented(`List ${one}s, without the ${group} themselves`, [
      [`practice-data ${group} list`],
      [`practice-data ${group} list --organization org_1 --json`]
    ])
  )

const idOf = (one: string) =>
  Argument.String("id").pipe(Argument.withDescription(`Id of the ${one}, as \`${one}s list\` shows it`))

const notRevoked = (one: string, id: string) =>
  new Refused({ message: `There is no ${one} ${id} that could be revoked.` })

const createKey = Command.make(
  "create",
  {
    organization: Operators.organization,
    name: Flag.String("name").pipe(
      Flag.withSchema(Operators.Line("what the key is for")),
      Flag.withDescription("What the key is for (required)")
    ),
    json: Output.json
  },
  Effect.fn(function* ({ json, ...options }) {
    const { id, key } = yield* Commands.createKey(yield* commandLine, options)
    const { name, organization } = options
    const text = Redacted.value(key)
    yield* json ? Output.record({ id, organization_id: organization, name, key: text }) : Output.print(text)
    yield* Output.note(`Created ${id} for ${organization}. The key is shown once, and stored nowhere.`)
    yield* Operators.noteIfUnknown(organization, "The key works, but /organization/get is 404 until there is.")
  })
).pipe(
  documented(
    "Create an API key for an organization",
    [
      ["practice-data keys create --organization org_1 --name 'Warehouse sync'"],
      ["KEY=$(practice-data keys create --organization org_1 --name CI)", "Keep the key in a variable"]
    ],
    "Create an API key for an organization. Standard output has the key alone."
  )
)

const keyColumns: Output.Columns<ApiKeys.ApiKey> = {
  ID: "id",
  ORGANIZATION: "organization_id",
  KEY: ({ prefix }) => `${prefix}…`,
  NAME: "name",
  "CREATED (UTC)": "created_at",
  "LAST USED": "last_used_on",
  "REVOKED (UTC)": "revoked_at"
}

const listKeys = listOf("keys", "API key", keyColumns, ApiKeys.list)

const revokeKey = Command.make(
  "revoke",
  { id: idOf("key") },
  Effect.fn(function* ({ id }) {
    if (Option.isNone(yield* Commands.revokeKey(yield* commandLine, id))) return yield* notRevoked("key", id)
    yield* Output.print(`Revoked ${id}`)
  })
).pipe(documented("Revoke an API key; it stops working at once", [["practice-data keys revoke key_3nVQ0aXbT1Zk"]]))

export const keys = Command.make("keys").pipe(
  Command.withDescription("API keys"),
  Command.withSubcommands([createKey, listKeys, revokeKey]),
  Command.provide(Operators.keys)
)

const addSecret = Command.make(
  "add",
  { organization: Operators.organization, json: Output.json },
  Effect.fn(function* ({ json, organization }) {
    const { id, secret } = yield* Commands.addSecret(yield* commandLine, organization)
    const text = Redacted.value(secret)
    yield* json ? Output.record({ id, organization_id: organization, secret: text }) : Output.print(text)
    yield* Output.note(
      `Created ${id}. The secret is shown once. From now on deliveries of ${organization} must be signed.`
    )
    yield* Operators.noteIfUnknown(organization, "What its deliveries name will not be found.")
  })
).pipe(
  documented(
    "Create a signing secret for an organization",
    [["practice-data secrets add --organization org_1"]],
    "Create a signing secret for an organization, beside those that it has. Standard output has the secret alone."
  )
)

const secretColumns: Output.Columns<IntakeSecrets.IntakeSecret> = {
  ID: "id",
  ORGANIZATION: "organization_id",
  "CREATED (UTC)": "created_at",
  "REVOKED (UTC)": "revoked_at"
}

const listSecrets = listOf("secrets", "signing secret", secretColumns, IntakeSecrets.list)

const revokeSecret = Command.make(
  "revoke",
  { id: idOf("secret") },
  Effect.fn(function* ({ id }) {
    const revoked = yield* Commands.revokeSecret(yield* commandLine, id)
    if (Option.isNone(revoked)) return yield* notRevoked("secret", id)
    const { left, organization } = revoked.value
    yield* Output.print(
      left === 0
        ? `Revoked ${id}. ${organization} has no secret left: its deliveries need not be signed, unless REQUIRE_SIGNATURES is set.`
        : `Revoked ${id}`
    )
  })
).pipe(
  documented("Revoke a signing secret; it stops working at once", [
    ["practice-data secrets revoke secret_0a1b2c3d4e5f"]
  ])
)

export const secrets = Command.make("secrets").pipe(
  Command.withDescription("Signing secrets of the intake"),
  Command.withSubcommands([addSecret, listSecrets, revokeSecret]),
  Command.provide(Operators.tasks)
)
