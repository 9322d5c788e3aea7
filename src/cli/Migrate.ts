/** `migrate`. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { beginAnew } from "../database/ChangeOrder.ts"
import { CredentialDatabase, TaskDatabase } from "../database/Database.ts"
import { migrate as applyMissing, openSchema } from "../database/Migrations.ts"
import { giveToLogins } from "../database/SessionSettings.ts"
import { invocation } from "../process/Package.ts"
import * as OperatorDatabases from "./OperatorDatabases.ts"
import * as Output from "./Output.ts"

/** Applies what is missing. Doing nothing is a success, so that every deployment may run it. */
export const migrate = Command.make(
  "migrate",
  { json: Output.json },
  Effect.fn(function* ({ json }) {
    const open = (yield* openSchema(yield* TaskDatabase)) ?? (yield* openSchema(yield* CredentialDatabase))
    if (open !== undefined) yield* Output.note(`${open.message} Run: ${open.statement}`)
    const ofTasks = yield* applyMissing(yield* TaskDatabase)
    const ofCredentials = yield* applyMissing(yield* CredentialDatabase)
    const applied = [...ofTasks, ...ofCredentials]
    const ofLogins = [yield* giveToLogins(yield* TaskDatabase), yield* giveToLogins(yield* CredentialDatabase)]
    const { given, refused } = {
      given: [...new Set(ofLogins.flatMap((one) => one.given))],
      refused: [...new Set(ofLogins.flatMap((one) => one.refused))]
    }
    const { begun, waiting } = yield* beginAnew(yield* TaskDatabase)
    if (json)
      return yield* Output.record({ applied, begun_anew: begun, waiting, logins_set: given, logins_not_set: refused })
    yield* Output.print(applied.length === 0 ? "Nothing to apply" : `Applied ${applied.join(", ")}`)
    if (given.length > 0) yield* Output.print(`Logins that have the settings of sessions now: ${given.join(", ")}`)
    if (refused.length > 0) {
      yield* Output.print(`Logins that this one may not change, which matters behind a pooler: ${refused.join(", ")}`)
    }
    if (begun.length > 0) {
      yield* Output.print(`Changes begin anew, and their readers start again: ${begun.join(", ")}`)
    }
    if (waiting.length > 0) {
      yield* Output.print(`Changes cannot begin anew yet, and the service tries again: ${waiting.join(", ")}`)
    }
  }, Effect.provide(OperatorDatabases.asTheyAre))
).pipe(
  Command.withDescription("Apply the migrations that are missing, and begin the order of changes anew after a restore"),
  Command.withShortDescription("Apply the migrations that are missing"),
  Command.withExamples([{ command: invocation("migrate"), description: "Prepare the Postgres of DATABASE_URL" }])
)
