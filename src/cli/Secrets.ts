/** `secrets`: the signing secrets of the intake. */
import { Effect, Option, Redacted } from "effect"
import { Argument, Command } from "effect/cli"
import * as IntakeSecrets from "../deletions/IntakeSecrets.ts"
import { commandLine } from "../operations/AuditLog.ts"
import * as Commands from "../operations/Commands.ts"
import { invocation } from "../process/Package.ts"
import * as OperatorDatabases from "./OperatorDatabases.ts"
import { noteIfUnknown, ofOne, organization } from "./Organization.ts"
import * as Output from "./Output.ts"
import { Refused } from "./Refused.ts"
import { type Column, second } from "./Table.ts"

const add = Command.make(
  "add",
  { organization, json: Output.json },
  Effect.fn(function* (options) {
    const { id, secret } = yield* Commands.addSecret(yield* commandLine, options.organization)
    const text = Redacted.value(secret)
    if (options.json) yield* Output.record({ id, organization_id: options.organization, secret: text })
    else yield* Output.print(text)
    yield* Output.note(
      `Created ${id}. The secret is shown once. From now on deliveries of ${options.organization} must be signed.`
    )
    yield* noteIfUnknown(options.organization, "What its deliveries name will not be found.")
  })
).pipe(
  Command.withDescription(
    "Create a signing secret for an organization, beside those that it has. Standard output has the secret alone."
  ),
  Command.withShortDescription("Create a signing secret for an organization"),
  Command.withExamples([{ command: invocation("secrets add --organization org_1") }])
)

const columns: ReadonlyArray<Column<IntakeSecrets.IntakeSecret>> = [
  { title: "ID", value: ({ id }) => id },
  { title: "ORGANIZATION", value: ({ organization_id }) => organization_id },
  { title: "CREATED (UTC)", value: ({ created_at }) => second(created_at) },
  { title: "REVOKED (UTC)", value: ({ revoked_at }) => second(revoked_at) }
]

const list = Command.make(
  "list",
  { organization: ofOne("secrets"), json: Output.json },
  Effect.fn(function* (options) {
    const owner = Option.getOrUndefined(options.organization)
    yield* Output.rows(yield* IntakeSecrets.list(owner), {
      columns,
      json: options.json,
      none: owner === undefined ? "There is no signing secret." : `${owner} has no signing secret.`
    })
  })
).pipe(
  Command.withDescription("List signing secrets, without the secrets themselves"),
  Command.withExamples([{ command: invocation("secrets list --organization org_1") }])
)

const revoke = Command.make(
  "revoke",
  { id: Argument.String("id").pipe(Argument.withDescription("Id of the secret, as `secrets list` shows it")) },
  Effect.fn(function* ({ id }) {
    const revoked = yield* Commands.revokeSecret(yield* commandLine, id)
    if (Option.isNone(revoked)) {
      return yield* new Refused({ message: `There is no secret ${id} that could be revoked.` })
    }
    const { left, organization: owner } = revoked.value
    yield* Output.print(
      left === 0
        ? `Revoked ${id}. ${owner} has no secret left: its deliveries need not be signed, unless REQUIRE_SIGNATURES is set.`
        : `Revoked ${id}`
    )
  })
).pipe(
  Command.withDescription("Revoke a signing secret; it stops working at once"),
  Command.withExamples([{ command: invocation("secrets revoke secret_0a1b2c3d4e5f") }])
)

/** `secrets`. */
export const secrets = Command.make("secrets").pipe(
  Command.withDescription("Signing secrets of the intake"),
  Command.withSubcommands([add, list, revoke]),
  Command.provide(OperatorDatabases.tasks)
)
