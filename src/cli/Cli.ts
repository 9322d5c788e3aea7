/** The command line. Operators' commands read the same configuration as the service. */
import { inspect } from "node:util"
import { Effect } from "effect"
import { Command } from "effect/cli"
import * as Failure from "../process/Failure.ts"
import { invocation } from "../process/Package.ts"
import { layerLogger } from "../process/Printed.ts"
import { version } from "../process/Package.ts"
import { audit } from "./Audit.ts"
import { demo } from "./Demo.ts"
import { distribute } from "./Distribute.ts"
import { doctor } from "./Doctor.ts"
import { get } from "./Get.ts"
import { keys } from "./Keys.ts"
import { migrate } from "./Migrate.ts"
import * as Output from "./Output.ts"
import { openapi } from "./OpenApi.ts"
import { search } from "./Search.ts"
import { secrets } from "./Secrets.ts"
import { send } from "./Send.ts"
import { serve } from "./Serve.ts"
import { sync } from "./Sync.ts"
import { tasks } from "./Tasks.ts"
import * as Usage from "./Usage.ts"

const command = Command.make("practice-data").pipe(
  Command.withDescription("Run and operate the practice data service, with the same variables that configure it"),
  Command.withExamples([
    { command: invocation("migrate"), description: "Prepare the Postgres of DATABASE_URL" },
    {
      command: invocation("keys create --organization org_1 --name 'Warehouse sync'"),
      description: "Let an organization read"
    },
    { command: invocation("tasks list --state dead"), description: "See which deletions need a look" }
  ]),
  Command.withSubcommands([
    { group: "The service", commands: [serve, migrate, distribute, demo] },
    { group: "Operate it", commands: [keys, secrets, tasks, audit, doctor] },
    { group: "Use it", commands: [get, search, sync, send, openapi] }
  ])
)

/** Runs the command that the arguments name. Says on standard error why it fails. */
export const run = (args: ReadonlyArray<string>) =>
  Command.runWith(command, { version })(args).pipe(
    Effect.tapErrorTag(
      ["ConfigError", "EmbeddedDatabaseError", "MigrationError", "NotMigrated", "Refused", "SqlError"],
      Failure.report
    ),
    // A row that does not decode.
    Effect.tapErrorTag("SchemaError", ({ message }) => Output.note(message.split("\n"))),
    Effect.tapDefect((defect) => Output.note(`This is a bug of practice-data: ${inspect(defect)}`.split("\n"))),
    Effect.provide([Usage.layer, layerLogger])
  )
