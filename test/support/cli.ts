/** Runs commands, over the database of the test. */
import { execFile } from "node:child_process"
import { Console as NodeConsole } from "node:console"
import { join } from "node:path"
import { Writable } from "node:stream"
import { NodeServices } from "@effect/platform-node"
import { ConfigProvider, Console, Effect } from "effect"
import { run } from "../../src/cli/Cli.ts"
import { exitCode } from "../../src/cli/Usage.ts"
import { TestDatabase } from "./TestDatabase.ts"

const root = join(import.meta.dirname, "../..")

/** How a command ended. */
export interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

const sink = () => {
  const chunks: Array<string> = []
  const stream = new Writable({
    write: (chunk, _, done) => {
      chunks.push(String(chunk))
      done()
    }
  })
  return { stream, text: () => chunks.join("") }
}

/** Runs a command in this process, with these variables alone. */
export const runWith = (environment: Readonly<Record<string, string>>, command: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const [stdout, stderr] = [sink(), sink()]
    const exit = yield* run(command).pipe(
      Effect.scoped,
      Effect.provide(NodeServices.layer),
      Effect.provideService(Console.Console, new NodeConsole(stdout.stream, stderr.stream)),
      Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: { ...environment } })),
      Effect.exit
    )
    const ended: Ended = { code: exitCode(exit), stdout: stdout.text(), stderr: stderr.text() }
    return ended
  })

/** Runs a command on the database of the test. */
export const cli = (...command: ReadonlyArray<string>) =>
  Effect.flatMap(TestDatabase, ({ url }) => runWith({ DATABASE_URL: url }, command))

/** How a process runs a command. */
interface Options {
  readonly environment: Readonly<Record<string, string>>
  /** After how many milliseconds it is killed. By default a slow one is, after a minute. */
  readonly killedAfter?: number
}

/** Runs a command as a process of its own, to its end. */
export const processWith = ({ environment, killedAfter = 60_000 }: Options, command: ReadonlyArray<string>) =>
  Effect.callback<Ended>((resume) => {
    const child = execFile(
      join(root, "node_modules/.bin/node"),
      [join(root, "src/cli.ts"), ...command],
      { env: { NO_COLOR: "1", ...environment }, timeout: killedAfter, killSignal: "SIGKILL" },
      (_, stdout, stderr) => resume(Effect.succeed({ code: child.exitCode ?? -1, stdout, stderr }))
    )
  })

/** Runs a command as operators do, as a process of its own, on the database of the test. */
export const cliProcess = (...command: ReadonlyArray<string>) =>
  Effect.flatMap(TestDatabase, ({ url }) => processWith({ environment: { DATABASE_URL: url } }, command))
