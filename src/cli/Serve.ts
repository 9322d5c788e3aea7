/** `serve`. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { documented } from "./Usage.ts"

/** Runs the service in place of the command. It ends the process itself, as when it is started alone. */
export const serve = Command.make(
  "serve",
  {},
  Effect.fn(function* () {
    const { run } = yield* Effect.promise(() => import("../app/App.ts"))
    return yield* Effect.uninterruptible(Effect.callback<never>(() => run()))
  })
).pipe(
  documented(
    "Run the service",
    [["PORT=8080 practice-data serve"], ["PROCESSES=2 ROLES=data-api,intake practice-data serve"]],
    "Run the service until a stop signal: the data API, the intake and the deletion worker, as ROLES says. Without DATABASE_URL, on an embedded Postgres with demo data."
  )
)
