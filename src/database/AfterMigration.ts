/** What starts before its database is migrated, and waits for it. */
import { Effect, Fiber, Layer } from "effect"
import { CredentialDatabase, TaskDatabase } from "./Database.ts"
import type { namesOf } from "./Databases.ts"
import { untilMigrated } from "./Migrations.ts"

/**
 * Builds a layer as soon as the task database is migrated, without holding up anything else. Says once of each database
 * that lacks migrations which ones, and how to apply them.
 */
export const layer = <E, R>(names: ReturnType<typeof namesOf>, worker: Layer.Layer<never, E, R>) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const tasks = yield* Effect.forkScoped(untilMigrated(names.tasks, yield* TaskDatabase))
      if (names.credentials !== names.tasks) {
        yield* Effect.forkScoped(untilMigrated(names.credentials, yield* CredentialDatabase))
      }
      yield* Effect.forkScoped(Effect.andThen(Fiber.join(tasks), Layer.buildWithScope(worker, scope)))
    })
  )
