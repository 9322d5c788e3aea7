/**
 * The signing secrets of organizations that require their deliveries to be signed: the service of the intake, and making,
 * listing and revoking them, for operators.
 *
 * A secret is `whsec_` and the base64 of 24 random bytes, as Standard Webhooks has it. It is stored as it is: a
 * signature cannot be verified with less.
 */
import { randomBytes } from "node:crypto"
import { Context, Duration, Effect, Layer, Option, Redacted, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { TaskDatabase } from "../database/Database.ts"
import { isoTime } from "../database/Time.ts"
import { SchedulerUnavailable } from "./Task.ts"

export class IntakeSecrets extends Context.Service<
  IntakeSecrets,
  {
    /** The secrets with which a delivery of the organization may be signed; none: it need not be signed, unless all must. */
    readonly of: (organization: string) => Effect.Effect<ReadonlyArray<Redacted.Redacted>, SchedulerUnavailable>
  }
>()("practice-data/deletions/IntakeSecrets") {
  /** Secrets in the table `intake_secrets`. */
  static readonly layer = Layer.effect(
    IntakeSecrets,
    Effect.gen(function* () {
      const sql = yield* TaskDatabase
      const find = SqlSchema.findAll({
        Request: Schema.String,
        Result: Schema.Struct({ secret: Schema.RedactedFromValue(Schema.String) }),
        execute: (organization) => sql`
          select secret from intake_secrets where organization_id = ${organization} and revoked_at is null
          order by created_at desc`
      })
      return IntakeSecrets.of({
        of: Effect.fn("IntakeSecrets.of")(function* (organization) {
          const rows = yield* sql.run(
            {
              key: `organization ${organization}`,
              within: Duration.millis(500),
              unavailable: ({ reason }) => new SchedulerUnavailable({ message: reason })
            },
            Effect.catchTag(find(organization), "SchemaError", Effect.die)
          )
          return rows.map(({ secret }) => secret)
        })
      })
    })
  )

  /**
   * The fake.
   *
   * @param secrets the secrets of each organization that has some
   */
  static readonly layerMemory = (secrets: Readonly<Record<string, ReadonlyArray<Redacted.Redacted>>> = {}) =>
    Layer.succeed(
      IntakeSecrets,
      IntakeSecrets.of({ of: (organization) => Effect.succeed(secrets[organization] ?? []) })
    )
}

/** What operators see of a secret: everything but the secret. Times are ISO 8601 in UTC. */
export const IntakeSecret = Schema.Struct({
  organization_id: Schema.String,
  id: Schema.String,
  created_at: Schema.String,
  revoked_at: Schema.NullOr(Schema.String)
})
export type IntakeSecret = typeof IntakeSecret.Type

/** A new secret. */
export const generate: Effect.Effect<Redacted.Redacted> = Effect.sync(() =>
  Redacted.make(`whsec_${randomBytes(24).toString("base64")}`)
)

/** Makes a secret for an organization, beside those that it has. From now on its deliveries must be signed. */
export const create = Effect.fn("IntakeSecrets.create")(function* (organization: string) {
  const sql = yield* TaskDatabase
  const secret = yield* generate
  const id = `secret_${randomBytes(6).toString("hex")}`
  yield* sql`insert into intake_secrets ${sql.insert({ organization_id: organization, id, secret: Redacted.value(secret) })}`
  return { id, secret }
})

/** The secrets of an organization, or of all, oldest first. */
export const list = SqlSchema.findAll({
  Request: Schema.UndefinedOr(Schema.String),
  Result: IntakeSecret,
  execute: (organization) =>
    Effect.flatMap(
      TaskDatabase,
      (sql) => sql`
        select organization_id, id, ${sql.literal(["created_at", "revoked_at"].map(isoTime).join(", "))}
        from intake_secrets
        where ${organization === undefined ? sql`true` : sql`organization_id = ${organization}`}
        order by intake_secrets.created_at, id`
    )
})

/**
 * Revokes a secret, at once. `left`: how many secrets its organization still has; without any, it takes unsigned
 * deliveries. Nothing when there is no such secret that was not revoked before.
 */
export const revoke = Effect.fn("IntakeSecrets.revoke")(function* (id: string) {
  const sql = yield* TaskDatabase
  const revoking = Effect.gen(function* () {
    // A change is of one organization's secrets.
    const [found] = yield* sql<{ organization: string }>`
      select organization_id as organization from intake_secrets where id = ${id} and revoked_at is null`
    if (found === undefined) return Option.none()
    const { organization } = found
    const revoked = yield* sql`
      update intake_secrets set revoked_at = now()
      where organization_id = ${organization} and id = ${id} and revoked_at is null returning 1`
    if (revoked.length === 0) return Option.none()
    const [rest] = yield* sql<{ left: number }>`
      select count(*)::integer as left from intake_secrets
      where organization_id = ${organization} and revoked_at is null`
    return Option.some({ organization, left: rest?.left ?? 0 })
  })
  return yield* sql.withTransaction(revoking)
})
