/**
 * Making, listing and revoking the signing secrets of the intake: for operators.
 *
 * A secret is `whsec_` and the base64 of 24 random bytes, as Standard Webhooks has it. It is stored as it is: a
 * signature cannot be verified with less.
 */
import { randomBytes } from "node:crypto"
import { Data, Effect, Redacted } from "effect"
import { TaskDatabase } from "../database/Database.ts"

/** What is known of a secret: everything but the secret. */
export interface IntakeSecret {
  readonly organization_id: string
  readonly id: string
  readonly created_at: string
  readonly revoked_at: string | null
}

/** What became of a revocation. */
export type Revocation = Data.TaggedEnum<{
  /** Revoked. `left`: how many secrets the organization still has; without any, it takes unsigned deliveries. */
  Revoked: { readonly organization: string; readonly left: number }
  /** No such secret, or revoked before. */
  NotFound: {}
}>
export const Revocation = Data.taggedEnum<Revocation>()

/** A new secret. */
export const generate: Effect.Effect<Redacted.Redacted> = Effect.sync(() =>
  Redacted.make(`whsec_${randomBytes(24).toString("base64")}`)
)

/** Makes a secret for an organization, beside those that it has. From now on its deliveries must be signed. */
export const create = Effect.fn("SecretAdmin.create")(function* (organization: string) {
  const sql = yield* TaskDatabase
  const secret = yield* generate
  const id = `secret_${randomBytes(6).toString("hex")}`
  yield* sql`insert into intake_secrets ${sql.insert({ organization_id: organization, id, secret: Redacted.value(secret) })}`
  return { id, secret }
})

/** The secrets of an organization, or of all, oldest first. */
export const list = Effect.fn("SecretAdmin.list")(function* (organization: string | undefined) {
  const sql = yield* TaskDatabase
  return yield* sql<IntakeSecret>`
    select organization_id, id, created_at::text, revoked_at::text
    from intake_secrets
    where ${organization === undefined ? sql`true` : sql`organization_id = ${organization}`}
    order by created_at, id`
})

/** Revokes a secret, at once. */
export const revoke = Effect.fn("SecretAdmin.revoke")(function* (id: string) {
  const sql = yield* TaskDatabase
  const [revoked] = yield* sql<{ organization_id: string }>`
    update intake_secrets set revoked_at = now() where id = ${id} and revoked_at is null returning organization_id`
  if (revoked === undefined) return Revocation.NotFound()
  const organization = revoked.organization_id
  const secrets = yield* list(organization)
  return Revocation.Revoked({
    organization,
    left: secrets.filter(({ revoked_at }) => revoked_at === null).length
  })
})
