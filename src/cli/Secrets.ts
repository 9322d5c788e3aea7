/** Commands about the signing secrets of the intake. */
import { Console, Effect, Option, Redacted } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import * as IntakeSecrets from "../deletions/IntakeSecrets.ts"
import { noteIfUnknown, organization } from "./Organization.ts"
import { Refused } from "./Refused.ts"

const addSecret = Command.make(
  "add",
  { organization },
  Effect.fn(function* (options) {
    const { id, secret } = yield* IntakeSecrets.create(options.organization)
    yield* Console.log(
      `${id}\n${Redacted.value(secret)}\nThis secret is shown once. From now on deliveries of ${options.organization} must be signed.`
    )
    yield* noteIfUnknown(options.organization, "What its deliveries name will not be found.")
  })
).pipe(Command.withDescription("Create a signing secret for an organization, beside those that it has"))

const listSecrets = Command.make(
  "list",
  { organization: Flag.optional(organization) },
  Effect.fn(function* (options) {
    const secrets = yield* IntakeSecrets.list(Option.getOrUndefined(options.organization))
    yield* Console.table(secrets)
  })
).pipe(Command.withDescription("List signing secrets, without the secrets themselves"))

const revokeSecret = Command.make(
  "revoke",
  { id: Argument.String("id").pipe(Argument.withDescription("Id of the secret, as `secrets list` shows it")) },
  Effect.fn(function* ({ id }) {
    const revoked = yield* IntakeSecrets.revoke(id)
    if (Option.isNone(revoked)) {
      return yield* new Refused({ message: `There is no secret ${id} that could be revoked.` })
    }
    const { left, organization: owner } = revoked.value
    yield* Console.log(
      left === 0 ? `Revoked ${id}. ${owner} has no secret left: its deliveries need not be signed.` : `Revoked ${id}`
    )
  })
).pipe(Command.withDescription("Revoke a signing secret; it stops working at once"))

/** `secrets`, over the task database. */
export const secrets = Command.make("secrets").pipe(
  Command.withDescription("Signing secrets of the intake"),
  Command.withSubcommands([addSecret, listSecrets, revokeSecret])
)
