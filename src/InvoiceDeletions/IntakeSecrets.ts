/** The signing secrets of organizations that require their deliveries to be signed. */
import { Context, Effect, Layer, Redacted } from "effect"
import { reasonOf, TaskDatabase, within } from "../Database/Database.ts"
import { SchedulerUnavailable } from "./Task.ts"

export class IntakeSecrets extends Context.Service<
  IntakeSecrets,
  {
    /** The secrets with which a delivery of the organization may be signed; none: it need not be signed. */
    readonly of: (organization: string) => Effect.Effect<ReadonlyArray<Redacted.Redacted>, SchedulerUnavailable>
  }
>()("practice-data/InvoiceDeletions/IntakeSecrets") {
  /** Secrets in the table `intake_secrets`. */
  static readonly layer = Layer.effect(
    IntakeSecrets,
    Effect.gen(function* () {
      const sql = yield* TaskDatabase
      return IntakeSecrets.of({
        of: Effect.fn("IntakeSecrets.of")(
          (organization) =>
            sql<{ secret: string }>`
              select secret from intake_secrets where organization_id = ${organization} and revoked_at is null
              order by created_at desc`.pipe(Effect.map((rows) => rows.map(({ secret }) => Redacted.make(secret)))),
          within(
            "500 millis",
            () => new SchedulerUnavailable({ message: "The signing secrets were not read in time" })
          ),
          Effect.catchTag("SqlError", (error) =>
            Effect.andThen(
              Effect.logWarning("The signing secrets cannot be read", reasonOf(error)),
              Effect.fail(new SchedulerUnavailable({ message: reasonOf(error) }))
            )
          )
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
