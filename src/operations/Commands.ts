/** The changes that operators can make, each with its entry in the audit log. */
import { Effect, Option } from "effect"
import { CredentialDatabase, TaskDatabase } from "../database/Database.ts"
import * as IntakeSecrets from "../deletions/IntakeSecrets.ts"
import * as Tasks from "../deletions/Tasks.ts"
import * as ApiKeys from "../keys/ApiKeys.ts"
import { type Actor, audited } from "./AuditLog.ts"

/** Makes an API key. */
export const createKey = Effect.fn("Commands.createKey")(function* (
  actor: Actor,
  options: Parameters<typeof ApiKeys.create>[0]
) {
  const entry = { organization: options.organization, action: "key.create", result: "created" } as const
  const change = ApiKeys.create(options)
  return yield* audited(yield* CredentialDatabase, actor, change, ({ id }) => ({ ...entry, target: id }))
})

/** Revokes an API key, as `ApiKeys.revoke` does. */
export const revokeKey = Effect.fn("Commands.revokeKey")(function* (actor: Actor, id: string) {
  const entry = { action: "key.revoke", target: id, result: "revoked" } as const
  return yield* audited(yield* CredentialDatabase, actor, ApiKeys.revoke(id), (organization) =>
    Option.isNone(organization) ? undefined : { ...entry, organization: organization.value }
  )
})

/** Makes a signing secret. */
export const addSecret = Effect.fn("Commands.addSecret")(function* (actor: Actor, organization: string) {
  const entry = { organization, action: "secret.add", result: "created" } as const
  const change = IntakeSecrets.create(organization)
  return yield* audited(yield* TaskDatabase, actor, change, ({ id }) => ({ ...entry, target: id }))
})

/** Revokes a signing secret, as `IntakeSecrets.revoke` does. */
export const revokeSecret = Effect.fn("Commands.revokeSecret")(function* (actor: Actor, id: string) {
  const entry = { action: "secret.revoke", target: id, result: "revoked" } as const
  return yield* audited(yield* TaskDatabase, actor, IntakeSecrets.revoke(id), (revoked) =>
    Option.isNone(revoked) ? undefined : { ...entry, organization: revoked.value.organization }
  )
})

/** Replays a task, as `Tasks.replay` does. An attempt on a task that is not dead is logged, too. */
export const replayTask = Effect.fn("Commands.replayTask")(function* (actor: Actor, identity: Tasks.Identity) {
  const entry = { action: "task.replay", target: identity.id } as const
  return yield* audited(yield* TaskDatabase, actor, Tasks.replay(identity), (outcome) =>
    Tasks.Replay.$match(outcome, {
      Replayed: ({ organization }) => ({ ...entry, organization, result: "replayed" }),
      NotDead: ({ organization, state }) => ({ ...entry, organization, result: `left as it is: ${state}` }),
      NotFound: () => undefined
    })
  )
})
