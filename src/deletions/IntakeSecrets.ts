/**
 * The signing secrets of organizations: the service of the intake, and the functions that create, list and revoke
 * secrets for operators.
 *
 * A secret is `whsec_` and the base64 of 24 random bytes, as in Standard Webhooks. It is stored as it is, because a
 * signature cannot be verified with less.
 */
import { randomBytes } from "node:crypto"
import { Context, Duration, Effect, Layer, Option, Redacted, Schema } from "effect"
import { TaskDatabase } from "../database/Database.ts"
import { credentialsOf, rowsOf, textsOf } from "../database/Columns.ts"
import { SchedulerUnavailable } from "./Task.ts"

type Secrets = ReadonlyArray<Redacted.Redacted>

const secretRows = rowsOf(Schema.Struct({ secret: Schema.NullOr(Schema.RedactedFromValue(Schema.String)) }))

export class IntakeSecrets extends Context.Service<
  IntakeSecrets,
  {
    /** The valid secrets of an organization, newest first; `closed` if an operator deleted the organization. */
    readonly of: (organization: string) => Effect.Effect<Secrets | "closed", SchedulerUnavailable>
  }
>()("practice-data/deletions/IntakeSecrets") {
  /** Secrets in the table `intake_secrets`. */
  static readonly layer = Layer.effect(
    IntakeSecrets,
    Effect.map(TaskDatabase, (sql) =>
      IntakeSecrets.of({
        of: Effect.fn("IntakeSecrets.of")(function* (organization) {
          const rows = yield* sql.run(
            {
              key: `organization ${organization}`,
              within: Duration.millis(500),
              unavailable: SchedulerUnavailable.from
            },
            secretRows(sql`
              select secret, created_at as at from intake_secrets
              where organization_id = ${organization} and revoked_at is null
              union all select null, closed_at from closed_organizations where organization_id = ${organization}
              order by at desc`)
          )
          const secrets = rows.flatMap(({ secret }) => secret ?? [])
          return secrets.length < rows.length ? "closed" : secrets
        })
      })
    )
  )

  /** The fake: secrets by organization. */
  static readonly layerMemory = (secrets: Readonly<Record<string, Secrets | "closed">> = {}) =>
    Layer.succeed(
      IntakeSecrets,
      IntakeSecrets.of({ of: (organization) => Effect.succeed(secrets[organization] ?? []) })
    )
}

/** A secret as operators see it: without the secret. Times are ISO 8601 in UTC. */
export const IntakeSecret = Schema.Struct({
  organization_id: Schema.String,
  id: Schema.String,
  created_at: Schema.String,
  revoked_at: Schema.NullOr(Schema.String)
})
export type IntakeSecret = typeof IntakeSecret.Type

/** Creates a secret of an organization, beside its others. From now on its deliveries must be signed. */
export const create = Effect.fn("IntakeSecrets.create")(function* (organization: string) {
  const sql = yield* TaskDatabase
  const secret = `whsec_${randomBytes(24).toString("base64")}`
  const id = `secret_${randomBytes(6).toString("hex")}`
  yield* sql`insert into intake_secrets ${sql.insert({ organization_id: organization, id, secret })}`
  return { id, secret: Redacted.make(secret) }
})

/** Lists the secrets of an organization, or of all, oldest first. */
export const list = credentialsOf(TaskDatabase, "intake_secrets", IntakeSecret)

/**
 * Revokes a secret; none if it does not exist or was revoked before. `left`: the valid secrets of its organization.
 * Without any, it takes unsigned deliveries.
 */
export const revoke = Effect.fn("IntakeSecrets.revoke")(function* (id: string) {
  const sql = yield* TaskDatabase
  const [organization] = yield* textsOf(sql`select organization_id as text from intake_secrets where id = ${id}`)
  if (organization === undefined) return Option.none()
  // A distributed table is changed by organization.
  const revoked = yield* sql`
    update intake_secrets set revoked_at = now()
    where organization_id = ${organization} and id = ${id} and revoked_at is null returning 1`
  if (revoked.length === 0) return Option.none()
  const left = yield* sql`select 1 from intake_secrets where organization_id = ${organization} and revoked_at is null`
  return Option.some({ organization, left: left.length })
})
