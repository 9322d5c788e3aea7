/**
 * The valid signing secrets of organizations, for the intake; `keys/SigningSecrets` creates and revokes them.
 *
 * An organization signs from its first secret on, also once all are revoked, until an operator allows unsigned deliveries:
 * that deletes the revoked secrets.
 */
import { Context, Duration, Effect, Layer, type Redacted, Schema } from "effect"
import { TaskDatabase } from "../database/Database.ts"
import { decodeRows } from "../database/Columns.ts"
import { inTime, type SchedulerUnavailable } from "../deletions/Scheduler.ts"

type Secrets = ReadonlyArray<Redacted.Redacted>

/** The valid secrets, newest first; `unsigned` if there never was one. */
type Signing = Secrets | "unsigned"

const secretRows = decodeRows(Schema.Struct({ secret: Schema.NullOr(Schema.RedactedFromValue(Schema.String)) }))

export class IntakeSecrets extends Context.Service<
  IntakeSecrets,
  {
    readonly of: (organization: string) => Effect.Effect<Signing, SchedulerUnavailable>
  }
>()("practice-data/intake/IntakeSecrets") {
  /** Secrets in the table `intake_secrets`. */
  static readonly layer = Layer.effect(
    IntakeSecrets,
    Effect.map(TaskDatabase, (sql) =>
      IntakeSecrets.of({
        of: Effect.fn("IntakeSecrets.of")(function* (organization) {
          const inHalfASecond = inTime(sql, `organization ${organization}`, Duration.millis(500))
          const rows = yield* inHalfASecond(
            secretRows(sql`
              select case when revoked_at is null then secret end as secret
              from intake_secrets where organization_id = ${organization} order by created_at desc`)
          )
          return rows.length === 0 ? "unsigned" : rows.flatMap(({ secret }) => secret ?? [])
        })
      })
    )
  )

  /** The fake: secrets by organization. */
  static readonly layerMemory = (secrets: Readonly<Record<string, Signing>> = {}) =>
    Layer.succeed(
      IntakeSecrets,
      IntakeSecrets.of({ of: (organization) => Effect.succeed(secrets[organization] ?? "unsigned") })
    )
}
