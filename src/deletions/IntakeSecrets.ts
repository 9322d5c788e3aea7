/** The signing secrets of organizations that require their deliveries to be signed. */
import { Context, Duration, Effect, Layer, Redacted } from "effect"
import { TaskDatabase } from "../database/Database.ts"
import { SchedulerUnavailable } from "./Task.ts"

export class IntakeSecrets extends Context.Service<
  IntakeSecrets,
  {
    /** The secrets with which a delivery of the organization may be signed; none: it need not be signed. */
    readonly of: (organization: string) => Effect.Effect<ReadonlyArray<Redacted.Redacted>, SchedulerUnavailable>
  }
>()("practice-data/deletions/IntakeSecrets") {
  /** Secrets in the table `intake_secrets`. */
  static readonly layer = Layer.effect(
    IntakeSecrets,
    Effect.gen(function* () {
      const sql = yield* TaskDatabase
      return IntakeSecrets.of({
        of: Effect.fn("IntakeSecrets.of")(
          (organization) =>
            sql.run(
              {
                key: `organization ${organization}`,
                within: Duration.millis(500),
                unavailable: ({ reason }) => new SchedulerUnavailable({ message: reason })
              },
              sql<{ secret: string }>`
                select secret from intake_secrets where organization_id = ${organization} and revoked_at is null
                order by created_at desc`
            ),
          Effect.map((rows) => rows.map(({ secret }) => Redacted.make(secret)))
        )
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
