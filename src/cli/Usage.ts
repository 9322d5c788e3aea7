/** How the command line answers a command that it does not understand: on standard error, and with exit code 2. */
import { Cause, Effect, Exit, Layer, Runtime } from "effect"
import { CliConfig, CliError, CliOutput, GlobalFlag } from "effect/cli"
import { nearest } from "../process/Variable.ts"
import { note } from "../process/Printed.ts"

// What an argument says is escaped, and so would colors be.
const { formatErrors } = CliOutput.defaultFormatter({ colors: false })

/** Of a word that is none of several: what was probably meant. */
const clarified = (error: CliError.NonShowHelpErrors): CliError.NonShowHelpErrors => {
  if (error._tag !== "InvalidValue" || !/^("[^"]*"( \| )?)+$/.test(error.expected)) return error
  const choices = error.expected.slice(1, -1).split('" | "')
  const meant = nearest(error.value.toLowerCase().replaceAll("_", "-"), choices)
  const { kind, option, value } = error
  const hint = meant === undefined ? "" : `. Did you mean ${meant}?`
  return new CliError.InvalidValue({ kind, option, value, expected: `${choices.join(", ")}${hint}` })
}

const presenter: CliOutput.Presenter = {
  present: Effect.fnUntraced(function* (event) {
    if (event._tag !== "InvalidInvocation") return yield* CliOutput.defaultPresenter.present(event)
    yield* note([
      ...formatErrors(event.errors.map(clarified)).trim().split("\n"),
      "",
      `Usage: ${event.helpDoc.usage}`,
      `Run '${event.commandPath.join(" ")} --help' for more.`
    ])
  })
}

/** The output of the command line, and its global flags. */
export const layer = Layer.mergeAll(
  CliOutput.layerPresenter(presenter),
  CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] })
)

/** The failure of a command whose arguments do not fit together. */
export const misused = (command: ReadonlyArray<string>, message: string) =>
  new CliError.ShowHelp({
    commandPath: ["practice-data", ...command],
    errors: [new CliError.ValidationError({ message })]
  })

const isMisused = (error: unknown) => CliError.isCliError(error) && error._tag === "ShowHelp" && error.errors.length > 0

/** The exit code of a command: 2 when it was not understood, 1 when it did not do what it was asked. */
export const exitCode = (exit: Exit.Exit<unknown, unknown>): number => {
  if (Exit.isFailure(exit) && isMisused(Cause.squash(exit.cause))) return 2
  let code = 0
  Runtime.defaultTeardown(exit, (found) => (code = found))
  return code
}
