/** The command line. Operators' commands read the same configuration as the service. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, MutableRef, Predicate } from "effect"
import { CliError, Command } from "effect/cli"
import * as Failure from "../process/Failure.ts"
import { version } from "../process/Package.ts"
import { layerLogger, note, written } from "../process/Printed.ts"
import { audit, keys, organizations, secrets } from "./Credentials.ts"
import { load } from "./load/Load.ts"
import { distribute, doctor, migrate, serve } from "./Service.ts"
import { sync } from "./sync/Sync.ts"
import { deletions, tasks } from "./Tasks.ts"
import * as Usage from "./Usage.ts"

const command = Command.make("practice-data").pipe(
  Command.withDescription("Run and operate the practice data service. Uses the same environment variables"),
  Command.withExamples([
    { command: "practice-data migrate", description: "Prepare the Postgres of DATABASE_URL" },
    {
      command: "practice-data keys create --organization org_1 --name 'Warehouse sync'",
      description: "Give an organization read access"
    },
    { command: "practice-data tasks list --state dead", description: "List deletions that need attention" }
  ]),
  Command.withSubcommands([
    { group: "The service", commands: [serve, migrate, distribute] },
    { group: "Operate it", commands: [organizations, load, keys, secrets, tasks, deletions, audit, doctor] },
    { group: "Use it", commands: [sync] }
  ])
)

/** Runs the command that the arguments name. Explains a failure on standard error. */
export const run = (args: ReadonlyArray<string>): Effect.Effect<void, { readonly _tag: string }, Command.Environment> =>
  Command.runWith(command, { version })(args).pipe(
    // The presenter has printed the errors of the command line.
    Effect.tapError((error) =>
      CliError.isCliError(error) ? Effect.void : Effect.andThen(written, Failure.report(error))
    ),
    Effect.tapDefect(Failure.reportDefect),
    Effect.provide([Usage.layer, layerLogger])
  )

/** Runs the command of this process, and ends the process with its exit code. */
export const main = () => {
  process.stdout.on("error", (error) => {
    // The reader has left, as `head` does: the shell's code.
    if (Predicate.hasProperty(error, "code") && error.code === "EPIPE") process.exit(141)
    Effect.runSync(note(`Cannot write to standard output: ${Failure.reasonOfFile(error)}`))
    process.exit(1)
  })
  // Only the words beside the output are lost: a full disk, or a reader who has left.
  process.stderr.on("error", () => {})
  // An interrupted command ends with the shell's code of the signal.
  const interrupted = MutableRef.make(130)
  process.once("SIGTERM", () => MutableRef.set(interrupted, 143))
  run(process.argv.slice(2)).pipe(
    Effect.provide(NodeServices.layer),
    NodeRuntime.runMain({
      disableErrorReporting: true,
      teardown: (exit, onExit) => {
        const code = Usage.exitCode(exit)
        // The end of the process would lose what a pipe has not taken.
        Effect.runFork(written).addObserver(() =>
          process.stderr.write("", () => onExit(code === 130 ? interrupted.current : code))
        )
      }
    })
  )
}
