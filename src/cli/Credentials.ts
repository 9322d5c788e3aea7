/** `organizations`, `keys`, `secrets` and `audit`: who may use the service, and the log of changes. */
import { Effect, Layer, Option, Redacted } from "effect"
import { Argument } from "effect/cli"
import * as ApiKeys from "../keys/ApiKeys.ts"
import * as SigningSecrets from "../keys/SigningSecrets.ts"
import * as Commands from "../operations/Commands.ts"
import { note } from "../process/Printed.ts"
import * as Operators from "./Operators.ts"
import * as Output from "./Output.ts"
import { command, group, refused } from "./Usage.ts"

const listOrganizations = command("organizations list", Operators.tasks, {
  description: "List organizations by id",
  examples: [["practice-data organizations list"], ["practice-data organizations list --limit 1000 --json"]],
  flags: { limit: Output.limit("organizations"), json: Output.json }
})(function* ({ json, limit }) {
  yield* Output.rows(json, yield* Commands.listOrganizations(limit), ["id", "name", "created_at"])
})

const createOrganization = command("organizations create", Operators.tasks, {
  description: "Create an organization",
  examples: [["practice-data organizations create org_1 --name 'Happy Paws'", "Before its first API key"]],
  flags: {
    id: Argument.String("id").pipe(
      Argument.withSchema(Commands.Line("the id of an organization")),
      Argument.withDescription("Id of the organization, as in its records")
    ),
    name: Operators.lineFlag("name", "the name of the organization", "Name, as shown by its API (required)")
  }
})(function* (given) {
  if (!(yield* Commands.createOrganization(given))) {
    return yield* refused(`Organization ${given.id} already exists. Nothing was changed.`)
  }
  yield* Output.print(`Created ${given.id}`)
})

export const organizations = group("organizations", "Organizations", [listOrganizations, createOrganization])

const idArgument = (credential: "key" | "secret") =>
  Argument.String("id").pipe(Argument.withDescription(`Id of the ${credential}, as \`${credential}s list\` shows it`))

const printCredential = Effect.fnUntraced(function* (
  isJson: boolean,
  kind: "key" | "secret",
  made: { readonly id: string; readonly organization_id: string; readonly name?: string },
  credential: Redacted.Redacted
) {
  const text = Redacted.value(credential)
  // First: an output that fails ends the process, and would leave a credential that nobody has and nobody knows of.
  yield* note(`Created ${made.id} for ${made.organization_id}. The ${kind} is shown once.`)
  yield* isJson ? Output.record({ ...made, [kind]: text }) : Output.print(text)
})

const createKey = command("keys create", Operators.keys, {
  description: "Create an API key for an organization. Standard output contains only the key.",
  examples: [
    ["practice-data keys create --organization org_1 --name 'Warehouse sync'"],
    ["KEY=$(practice-data keys create --organization org_1 --name CI)", "Store the key in a variable"]
  ],
  flags: {
    organization: Operators.organization,
    name: Operators.lineFlag("name", "what the key is for", "Purpose of the key (required)"),
    json: Output.json
  }
})(function* ({ json, name, organization }) {
  const { id, key } = yield* Commands.createKey({ name, organization })
  yield* printCredential(json, "key", { id, organization_id: organization, name }, key)
})

const listKeys = command("keys list", Operators.keys, {
  description: "List API keys, without their values",
  examples: [["practice-data keys list"], ["practice-data keys list --organization org_1 --json"]],
  flags: { organization: Operators.organizationFilter("keys"), json: Output.json }
})(function* ({ json, organization }) {
  const fields = ["id", "organization_id", "prefix", "name", "created_at", "last_used_on", "revoked_at"]
  yield* Output.rows(json, yield* ApiKeys.list(organization), fields)
})

const revokeKey = command("keys revoke", Operators.keys, {
  description: "Revoke an API key; it stops working at once",
  examples: [["practice-data keys revoke key_3nVQ0aXbT1Zk"]],
  flags: { id: idArgument("key") }
})(function* ({ id }) {
  const revoked = yield* Commands.revokeKey(id)
  if (Option.isNone(revoked)) return yield* refused(`No valid key ${id} to revoke.`)
  yield* Output.print(`Revoked ${id}`)
})

export const keys = group("keys", "API keys", [createKey, listKeys, revokeKey])

const addSecret = command("secrets add", Operators.tasks, {
  description:
    "Create a signing secret for an organization, in addition to existing ones. Standard output contains only the secret.",
  examples: [["practice-data secrets add --organization org_1"]],
  flags: { organization: Operators.organization, json: Output.json }
})(function* ({ json, organization }) {
  const { id, secret } = yield* Commands.addSecret(organization)
  yield* printCredential(json, "secret", { id, organization_id: organization }, secret)
  yield* Output.note(`From now on deliveries of ${organization} must be signed.`)
})

/** Explains the 401 of an organization without a valid secret. */
const unsignedRefused = (organization: string) =>
  `${organization} has no valid signing secret: its deliveries get 401. To accept unsigned ones, run: secrets allow-unsigned --organization ${organization}`

const listSecrets = command("secrets list", Operators.tasks, {
  description: "List signing secrets, without their values",
  examples: [["practice-data secrets list"], ["practice-data secrets list --organization org_1 --json"]],
  flags: { organization: Operators.organizationFilter("secrets"), json: Output.json }
})(function* ({ json, organization }) {
  const secrets = yield* SigningSecrets.list(organization)
  yield* Output.rows(json, secrets, ["id", "organization_id", "created_at", "revoked_at"])
  const byOwner = Map.groupBy(secrets, ({ organization_id }) => organization_id)
  for (const [owner, owned] of byOwner) {
    if (owned.every(({ revoked_at }) => revoked_at !== null)) yield* Output.note(unsignedRefused(owner))
  }
})

const revokeSecret = command("secrets revoke", Operators.tasks, {
  description: "Revoke a signing secret; it stops working at once",
  examples: [["practice-data secrets revoke secret_0a1b2c3d4e5f"]],
  flags: { id: idArgument("secret") }
})(function* ({ id }) {
  const revoked = yield* Commands.revokeSecret(id)
  if (Option.isNone(revoked)) return yield* refused(`No valid signing secret ${id} to revoke.`)
  const { left, organization } = revoked.value
  yield* Output.print(`Revoked ${id}${left > 0 ? "" : `. ${unsignedRefused(organization)}`}`)
})

const allowUnsigned = command("secrets allow-unsigned", Operators.tasks, {
  description:
    "Accept unsigned deliveries of an organization whose secrets are all revoked, from anyone who reaches the intake. Deletes the revoked secrets.",
  examples: [["practice-data secrets allow-unsigned --organization org_1"]],
  flags: { organization: Operators.organization }
})(function* ({ organization }) {
  if (yield* Commands.allowUnsigned(organization)) {
    return yield* Output.print(`${organization} no longer has to sign its deliveries, unless REQUIRE_SIGNATURES is set`)
  }
  return yield* refused(`${organization} has a valid signing secret, or never had one. Nothing was changed.`)
})

export const secrets = group("secrets", "Signing secrets of the intake", [
  addSecret,
  listSecrets,
  revokeSecret,
  allowUnsigned
])

const listChanges = command("audit list", Layer.merge(Operators.tasks, Operators.keys), {
  description: "List changes by operators, newest first",
  examples: [["practice-data audit list --limit 10"]],
  flags: { limit: Output.limit("entries"), json: Output.json }
})(function* ({ json, limit }) {
  const fields = ["at", "actor", "source", "action", "result", "target", "organization_id"]
  yield* Output.rows(json, yield* Commands.auditLog(limit), fields)
})

export const audit = group("audit", "Changes by operators: organizations, API keys, signing secrets and deletions", [
  listChanges
])
