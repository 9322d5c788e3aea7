/** `distribute`. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { TaskDatabase } from "../database/Database.ts"
import { distribute as distributeTables, settings } from "../database/Distribute.ts"
import { invocation } from "../process/Package.ts"
import * as OperatorDatabases from "./OperatorDatabases.ts"
import * as Output from "./Output.ts"
import { Refused } from "./Refused.ts"

const named = (count: number) => (count === 1 ? "1 table" : `${count} tables`)

/** Distributes what is not distributed yet. Doing nothing is a success. */
export const distribute = Command.make(
  "distribute",
  { json: Output.json },
  Effect.fn(function* ({ json }) {
    const done = yield* Effect.catchTag(
      distributeTables(yield* TaskDatabase),
      "CannotDistribute",
      ({ message }) => new Refused({ message })
    )
    const { configured, copied, distributed, granted, refused } = done
    if (json) yield* Output.record(done)
    else {
      if (distributed.length > 0) {
        yield* Output.print(`Distributed ${named(distributed.length)} by organization: ${distributed.join(", ")}`)
      }
      if (copied.length > 0) yield* Output.print(`Copied ${named(copied.length)} to each server: ${copied.join(", ")}`)
      if (distributed.length + copied.length === 0) yield* Output.print("All tables are distributed")
      for (const privileges of granted) yield* Output.print(`Granted ${privileges}`)
      const set = Object.entries(settings)
        .map(([name, value]) => `${name} = ${value}`)
        .join(", ")
      yield* Output.print(
        `Sessions of this database have ${set}${configured.length === 0 ? "" : `; new on ${configured.join(", ")}`}`
      )
    }
    if (distributed.length > 0) {
      yield* Output.note(
        "The rows that were moved also take space on this server until you run, for each table: select truncate_local_data_after_distributing_table('TABLE')"
      )
      yield* Output.note("Services that run notice it within 10 seconds. POST /X/changes is refused from now on.")
    }
    if (refused.length > 0) {
      return yield* new Refused({
        message: `These servers did not take the settings. Set them there by \`alter database\`: ${refused.join("; ")}`
      })
    }
  }, Effect.provide(OperatorDatabases.tasks))
).pipe(
  Command.withDescription(
    "Distribute the tables of DATABASE_URL over the servers of Citus, by organization, and set what its sessions need. Needs the extension, and a login that owns the tables and the database. Safe to run again: it does what is left."
  ),
  Command.withShortDescription("Distribute the tables over the servers of Citus"),
  Command.withExamples([
    { command: invocation("distribute"), description: "Spread a migrated database over its servers" }
  ])
)
