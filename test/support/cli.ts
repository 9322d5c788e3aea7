/** Runs commands: in this process, or as processes of their own. */
import { Console as NodeConsole } from "node:console"
import { join } from "node:path"
import { PassThrough } from "node:stream"
import { NodeServices } from "@effect/platform-node"
import { ConfigProvider, Console, Effect } from "effect"
import { run } from "../../src/cli/Cli.ts"
import { exitCode } from "../../src/cli/Usage.ts"
import * as Process from "./Process.ts"
import { type Ended, run as runProcess } from "./run.ts"
import { TestDatabase } from "./TestDatabase.ts"

const program = join(Process.root, "src/cli.ts")

/** The words that run a command as a process. */
export const programArgs = [Process.node, program]

/** A stream that keeps what is written. */
const sink = () => new PassThrough({ highWaterMark: 2 ** 30 })

const textOf = (stream: PassThrough) => String(stream.read(stream.readableLength) ?? "")

/** Runs a command in this process, with these variables alone. */
export const runWith = (environment: Process.Environment, command: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const [stdout, stderr] = [sink(), sink()]
    const exit = yield* run(command).pipe(
      Effect.provide(NodeServices.layer),
      Effect.provideService(Console.Console, new NodeConsole(stdout, stderr)),
      Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: { ...environment } })),
      Effect.exit
    )
    return { code: exitCode(exit), stdout: textOf(stdout), stderr: textOf(stderr) } satisfies Ended
  })

/** Runs a command on the database of the test. */
export const cli = (...command: ReadonlyArray<string>) =>
  Effect.flatMap(TestDatabase, ({ url }) => runWith({ DATABASE_URL: url }, command))

/** Runs a command as a process of its own, to its end. A hung one is killed. */
export const processWith = (environment: Process.Environment, command: ReadonlyArray<string>) =>
  runProcess(Process.node, [program, ...command], {
    cwd: Process.root,
    env: { NO_COLOR: "1", ...environment },
    timeout: 200_000
  })

/** Starts a command as a process of its own. It is killed when the scope closes. */
export const start = (environment: Process.Environment, command: ReadonlyArray<string>) =>
  Effect.flatMap(Process.temporaryFolder, (cwd) =>
    Process.startCommand({ file: Process.node, args: [program, ...command], cwd }, environment)
  )
