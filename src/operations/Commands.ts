/** The changes that operators can make. A change and its entry in the audit log are one transaction. */
import { userInfo } from "node:os"
import { Effect, Option, Result } from "effect"
import { CredentialDatabase, type Database, TaskDatabase } from "../database/Database.ts"
import * as IntakeSecrets from "../deletions/IntakeSecrets.ts"
import * as Tasks from "../deletions/Tasks.ts"
import * as ApiKeys from "../keys/ApiKeys.ts"

/** The author of a change. */
export interface Actor {
  /** The given name, or the user of the operating system. */
  readonly name: string
  /** The address of a browser, or `command line`. */
  readonly source: string
}

/** The user of the command line. */
export const commandLine: Effect.Effect<Actor> = Effect.sync(() => {
  // The user has no name on some systems, such as some containers.
  const name = Result.getOrElse(
    Result.try(() => userInfo().username),
    () => `uid ${process.getuid?.() ?? "unknown"}`
  )
  return { name, source: "command line" }
})

/** Organization, target (the id of a key, a secret or a task) and result. None may hold a secret. */
type Change = readonly [organization: string, target: string, result: string]

/**
 * Makes a change and logs it.
 *
 * @param changeOf the change of a result; undefined where nothing changed
 */
const audited = <A, E, R>(
  sql: Database,
  actor: Actor,
  action: "key.create" | "key.revoke" | "secret.add" | "secret.revoke" | "task.replay",
  change: Effect.Effect<A, E, R>,
  changeOf: (result: A) => Change | undefined
) =>
  sql.withTransaction(
    Effect.gen(function* () {
      const made = yield* change
      const [organization_id, target, result] = changeOf(made) ?? []
      const entry = { organization_id, actor: actor.name, source: actor.source, action, target, result }
      if (organization_id !== undefined) yield* sql`insert into audit_log ${sql.insert(entry)}`
      return made
    })
  )

/** Makes an API key. */
export const createKey = Effect.fn("Commands.createKey")(function* (
  actor: Actor,
  options: Parameters<typeof ApiKeys.create>[0]
) {
  const sql = yield* CredentialDatabase
  return yield* audited(sql, actor, "key.create", ApiKeys.create(options), ({ id }) => [
    options.organization,
    id,
    "created"
  ])
})

/** Revokes an API key, as `ApiKeys.revoke` does. */
export const revokeKey = Effect.fn("Commands.revokeKey")(function* (actor: Actor, id: string) {
  const sql = yield* CredentialDatabase
  return yield* audited(sql, actor, "key.revoke", ApiKeys.revoke(id), (organization) =>
    Option.isNone(organization) ? undefined : [organization.value, id, "revoked"]
  )
})

/** Makes a signing secret. */
export const addSecret = Effect.fn("Commands.addSecret")(function* (actor: Actor, organization: string) {
  const sql = yield* TaskDatabase
  return yield* audited(sql, actor, "secret.add", IntakeSecrets.create(organization), ({ id }) => [
    organization,
    id,
    "created"
  ])
})

/** Revokes a signing secret, as `IntakeSecrets.revoke` does. */
export const revokeSecret = Effect.fn("Commands.revokeSecret")(function* (actor: Actor, id: string) {
  const sql = yield* TaskDatabase
  return yield* audited(sql, actor, "secret.revoke", IntakeSecrets.revoke(id), (revoked) =>
    Option.isNone(revoked) ? undefined : [revoked.value.organization, id, "revoked"]
  )
})

/** Replays a task, as `Tasks.replay` does. An attempt on a task that is not dead is logged, too. */
export const replayTask = Effect.fn("Commands.replayTask")(function* (actor: Actor, identity: Tasks.Identity) {
  const sql = yield* TaskDatabase
  return yield* audited(
    sql,
    actor,
    "task.replay",
    Tasks.replay(identity),
    Tasks.Replay.$match({
      Replayed: ({ organization }) => [organization, identity.id, "replayed"] as const,
      NotDead: ({ organization, state }) => [organization, identity.id, `left as it is: ${state}`] as const,
      NotFound: () => undefined
    })
  )
})
