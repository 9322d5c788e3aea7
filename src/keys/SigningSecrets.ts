/**
 * Creates, lists and revokes the signing secrets of deliveries: for operators.
 *
 * A secret is `whsec_` and the base64 of 24 random bytes, as in Standard Webhooks. It is stored as it is, because a
 * signature cannot be verified with less.
 */
import { randomBytes } from "node:crypto"
import { Effect, Option, Redacted, Schema } from "effect"
import { TaskDatabase } from "../database/Database.ts"
import { credential, decodeTexts, listCredentials } from "../database/Columns.ts"

/** Creates a secret of an organization, beside its others. From now on its deliveries must be signed. */
export const create = Effect.fn("SigningSecrets.create")(function* (organization: string) {
  const sql = yield* TaskDatabase
  const id = `secret_${randomBytes(6).toString("hex")}`
  const secret = `whsec_${randomBytes(24).toString("base64")}`
  yield* sql`insert into intake_secrets ${sql.insert({ organization_id: organization, id, secret })}`
  return { id, secret: Redacted.make(secret) }
})

/** Lists the secrets of an organization, or of all, oldest first. */
export const list = listCredentials(TaskDatabase, "intake_secrets", Schema.Struct(credential))

/**
 * Revokes a secret; none if it does not exist or was revoked before. `left`: the valid secrets of its organization.
 * Without any, its deliveries are refused.
 */
export const revoke = Effect.fn("SigningSecrets.revoke")(function* (id: string) {
  const sql = yield* TaskDatabase
  const [organization] = yield* decodeTexts(sql`select organization_id as text from intake_secrets where id = ${id}`)
  if (organization === undefined) return Option.none()
  // A distributed table is changed by organization.
  const revoked = yield* sql`
    update intake_secrets set revoked_at = now()
    where organization_id = ${organization} and id = ${id} and revoked_at is null returning 1`
  if (revoked.length === 0) return Option.none()
  const left = yield* sql`select 1 from intake_secrets where organization_id = ${organization} and revoked_at is null`
  return Option.some({ organization, left: left.length })
})

/** Accepts unsigned deliveries of an organization whose secrets are all revoked. False if it has a valid one, or never had any. */
export const allowUnsigned = Effect.fn("SigningSecrets.allowUnsigned")(function* (organization: string) {
  const sql = yield* TaskDatabase
  const forgotten = yield* sql`
    delete from intake_secrets where organization_id = ${organization} and not exists (
      select from intake_secrets where organization_id = ${organization} and revoked_at is null
    ) returning 1`
  return forgotten.length > 0
})
