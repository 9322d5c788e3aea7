/** Makes commands with their help. Exit code 1: a command refuses; 2: it is not understood; 75: a retry may help. */
import { Cause, Effect, Exit, Layer, Runtime, Schema } from "effect"
import { CliConfig, CliError, CliOutput, Command, GlobalFlag } from "effect/cli"
import { note } from "../process/Printed.ts"

/** The command did nothing, or a retry would not help; the message is the reason. Exit code 1. */
export class Refused extends Schema.TaggedError<Refused>()("Refused", { message: Schema.String }) {}

export const refused = (message: string) => new Refused({ message })

/** A retry may help, as when the service does not respond. The exit code is that of the system for "try again later". */
export class Unavailable extends Schema.TaggedError<Unavailable>()("Unavailable", { message: Schema.String }) {
  override readonly [Runtime.errorExitCode] = 75
}

export type Failed = Refused | Unavailable

interface Usage<Flags> {
  /** Lists of commands show its first sentence. */
  readonly description: string
  readonly examples: ReadonlyArray<readonly [command: string, description?: string]>
  readonly flags: Flags
}

/** The failure of a command whose arguments do not fit together. */
export const misused = (message: string) =>
  // Its command sets the path.
  new CliError.ShowHelp({ commandPath: [], errors: [new CliError.ValidationError({ message })] })

/** A command by its words, such as `tasks list`. Its handler gets the values of the flags, a scope and some services. */
export const command =
  <const Flags extends Command.Command.Config, A, E, R>(
    words: string,
    services: Layer.Layer<A, E, R>,
    { description, examples, flags }: Usage<Flags>
  ) =>
  <Eff extends Effect.Effect<unknown, unknown, unknown>>(
    run: (given: Command.Command.Config.Infer<Flags>) => Generator<Eff, void, never>
  ) => {
    const commandPath = ["practice-data", ...words.split(" ")]
    const handle = Effect.fn(
      run,
      Effect.scoped,
      Effect.mapError((error) =>
        CliError.isCliError(error) && error._tag === "ShowHelp"
          ? new CliError.ShowHelp({ commandPath, errors: error.errors })
          : error
      )
    )
    return Command.make(commandPath.at(-1) ?? words, flags, handle).pipe(
      Command.withDescription(description),
      Command.withShortDescription(description.replace(/([:;\n]|\.(\s|$)).*/s, "")),
      Command.withExamples(examples.map(([line, about]) => ({ command: line, description: about }))),
      Command.provide(services)
    )
  }

/** Commands whose words begin with the same one. */
export const group = <const Commands extends ReadonlyArray<Command.Command.Any>>(
  word: string,
  description: string,
  commands: Commands
) => Command.make(word).pipe(Command.withDescription(description), Command.withSubcommands(commands))

// The presenter escapes its lines, and would escape colors.
const { formatErrors } = CliOutput.defaultFormatter({ colors: false })

const presenter: CliOutput.Presenter = {
  present: Effect.fnUntraced(function* (event) {
    if (event._tag !== "InvalidInvocation") return yield* CliOutput.defaultPresenter.present(event)
    yield* note([
      ...formatErrors(event.errors).replaceAll("Schema validation failed: Expected ", "").trim().split("\n"),
      "",
      `Usage: ${event.helpDoc.usage}`,
      `Run '${event.commandPath.join(" ")} --help' for more.`
    ])
  })
}

export const layer = Layer.mergeAll(
  CliOutput.layerPresenter(presenter),
  CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] })
)

/** The exit code of a command: 2 where it was not understood. */
export const exitCode = (exit: Exit.Exit<unknown, unknown>): number => {
  if (Exit.isSuccess(exit)) return 0
  if (Cause.hasInterruptsOnly(exit.cause)) return 130
  const error = Cause.squash(exit.cause)
  const isMisused = CliError.isCliError(error) && error._tag === "ShowHelp" && error.errors.length > 0
  return isMisused ? 2 : Runtime.getErrorExitCode(error)
}
