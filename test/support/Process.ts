/** The program as a process of its own: started with an environment, watched, stopped, and never left behind. */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Data, Deferred, Duration, Effect } from "effect"

const root = join(import.meta.dirname, "../..")
const node = join(root, "node_modules/.bin/node")
const main = join(root, "src/main.ts")

// One for all that are started, whose own temporary folders go away.
const compileCache = join(tmpdir(), "node-compile-cache")

/** The variables that the program reads. What a test does not give is unset. */
export type Environment = Readonly<Record<string, string>>

/** How a process ended. */
export interface End {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** A process that ended before it listened, or never listened. */
export class NotListening extends Data.TaggedError("NotListening")<{
  readonly end: End | undefined
  readonly output: string
}> {}

/** A started program. */
export interface Process {
  readonly pid: number
  /** Everything that it has written so far. */
  readonly output: () => string
  /** What it has written to standard output so far. */
  readonly stdout: () => string
  /** How it ended, once it has. */
  readonly ended: Effect.Effect<End>
  readonly kill: (signal: NodeJS.Signals) => Effect.Effect<void>
  /** The address in its message that it listens, reachable from here. */
  readonly address: Effect.Effect<string, NotListening>
}

/** How long anything that a test waits for may take. */
export const timeout = Duration.minutes(2)

const killAtExit = (child: ChildProcess) => {
  const kill = () => child.kill("SIGKILL")
  process.once("exit", kill)
  child.once("exit", () => process.off("exit", kill))
}

const listening = /Listening on (http:\/\/[^\s"\\]+)/

/** A folder that goes away with the scope. */
export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "practice-data-test-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
)

/** How to start a program. */
export interface Command {
  readonly file: string
  readonly args: ReadonlyArray<string>
  readonly cwd: string
  /** The user and group to run it as; otherwise those of the test. */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined
}

/** Starts the program, in an empty folder unless one is given. When the scope closes, it is gone. */
export const start = Effect.fnUntraced(function* (environment: Environment, folder?: string) {
  const cwd = folder ?? (yield* temporaryFolder)
  return yield* startCommand({ file: node, args: [main], cwd }, environment)
})

/** Starts the program in another way, as `start` does. */
export const startCommand = Effect.fnUntraced(function* (command: Command, environment: Environment) {
  const { args, cwd, file, user } = command
  const scratch = yield* temporaryFolder
  const ended = yield* Deferred.make<End>()
  const address = yield* Deferred.make<string>()
  let output = ""
  let stdout = ""
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const spawned = spawn(file, args, {
        cwd,
        ...user,
        env: {
          TMPDIR: scratch,
          NODE_COMPILE_CACHE: compileCache,
          HOST: "127.0.0.1",
          PORT: "0",
          DRAIN: "0 seconds",
          ...environment
        },
        stdio: ["ignore", "pipe", "pipe"]
      })
      killAtExit(spawned)
      const read = (text: string) => {
        output += text
        const found = Deferred.isDoneUnsafe(address) ? undefined : listening.exec(output)?.[1]
        if (found === undefined) return
        Deferred.doneUnsafe(address, Effect.succeed(found.replace("//0.0.0.0:", "//127.0.0.1:")))
      }
      spawned.stdout.setEncoding("utf8").on("data", (text: string) => {
        stdout += text
        read(text)
      })
      spawned.stderr.setEncoding("utf8").on("data", read)
      spawned.once("close", (code, signal) => Deferred.doneUnsafe(ended, Effect.succeed({ code, signal })))
      return spawned
    }),
    (spawned) =>
      Effect.andThen(
        Effect.sync(() => spawned.kill("SIGKILL")),
        Deferred.await(ended)
      )
  )
  const started: Process = {
    pid: child.pid ?? 0,
    output: () => output,
    stdout: () => stdout,
    ended: Deferred.await(ended),
    kill: (signal) => Effect.sync(() => void child.kill(signal)),
    address: Deferred.await(address).pipe(
      Effect.raceFirst(
        Effect.flatMap(Deferred.await(ended), (end) => Effect.suspend(() => new NotListening({ end, output })))
      ),
      Effect.timeoutOrElse({
        duration: timeout,
        orElse: () => Effect.suspend(() => new NotListening({ end: undefined, output }))
      })
    )
  }
  return started
})

/** Starts the program where it is expected not to run. Returns how it ended. */
export const startToEnd = (environment: Environment) =>
  Effect.gen(function* () {
    const { address, ended, output } = yield* start(environment)
    const listened = Effect.as(address, { code: null, signal: null })
    const end = yield* Effect.raceFirst(
      ended,
      Effect.catchTag(listened, "NotListening", () => ended)
    )
    return { ...end, output: output() }
  }).pipe(Effect.scoped)
