/** `serve`. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { invocation } from "../process/Package.ts"

/** Runs the service in the place of the command: it ends the process by itself, as it does when it is started alone. */
export const serve = Command.make(
  "serve",
  {},
  Effect.fn(function* () {
    const { run } = yield* Effect.promise(() => import("../app/App.ts"))
    return yield* Effect.uninterruptible(Effect.callback<never>(() => run()))
  })
).pipe(
  Command.withDescription(
    "Run the service until a stop signal: the data API, the intake and the deletion worker, as ROLES says. Without DATABASE_URL, on an embedded Postgres with demo data."
  ),
  Command.withShortDescription("Run the service"),
  Command.withExamples([
    { command: `PORT=8080 ${invocation("serve")}` },
    { command: `PROCESSES=2 ROLES=data-api,intake ${invocation("serve")}` }
  ])
)
