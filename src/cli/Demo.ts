/** `demo`. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { TaskDatabase } from "../database/Database.ts"
import { organizations } from "../demo/DemoData.ts"
import { loadDemoData } from "../demo/Load.ts"
import { invocation } from "../process/Package.ts"
import * as OperatorDatabases from "./OperatorDatabases.ts"
import * as Output from "./Output.ts"
import { Refused } from "./Refused.ts"

/** Loads the demo data into a migrated database that has no organization yet. */
export const demo = Command.make(
  "demo",
  {},
  Effect.fn(function* () {
    if (!(yield* loadDemoData(yield* TaskDatabase))) {
      return yield* new Refused({ message: "The database has an organization already. Nothing is loaded." })
    }
    const keys = organizations.map(({ key, slug }) => `${key} (org_${slug})`).join(" and ")
    yield* Output.print(`The demo data is loaded, with the API keys ${keys}`)
  }, Effect.provide(OperatorDatabases.tasks))
).pipe(
  Command.withDescription(
    "Load the demo data into the migrated Postgres of DATABASE_URL, to try the service on it. Not for a database that is anybody's: the demo API keys are public. A database that has an organization is left as it is."
  ),
  Command.withShortDescription("Load the demo data into an empty Postgres"),
  Command.withExamples([{ command: invocation("demo") }])
)
