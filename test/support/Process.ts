/** The program as a process of its own: started with an environment, watched, stopped, and never left behind. */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Data, Deferred, Effect } from "effect"
import { memory } from "./LocalPostgres.ts"

/** The folder of the package. */
export const root = join(import.meta.dirname, "../..")

/** The Node that the package brings. */
export const node = join(root, "node_modules/.bin/node")

const defaults = {
  // Shared by all programs: the temporary folder of each one is removed.
  NODE_COMPILE_CACHE: join(tmpdir(), "node-compile-cache"),
  HOST: "127.0.0.1",
  PORT: "0",
  DRAIN: "0s"
}

/** The variables that the program reads. Others are unset. */
export type Environment = Readonly<Record<string, string>>

/** The end of a process. */
export interface End {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** The process ended before it listened, or did not listen in time. */
class NotListening extends Data.TaggedError("NotListening")<{
  readonly end: End | undefined
  readonly output: string
}> {}

const running = new Set<ChildProcess>()
process.once("exit", () => running.forEach((child) => child.kill("SIGKILL")))

const listening = /Listening on (http:\/\/[^\s",\\]+)/

/** A folder that is removed with the scope. */
export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(memory()[0] ?? tmpdir(), "practice-data-test-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
)

/** A command that starts a program. */
interface Command {
  readonly file: string
  readonly args: ReadonlyArray<string>
  readonly cwd: string
}

/** Starts the program, in an empty folder unless one is given. It is killed when the scope closes. */
export const start = Effect.fnUntraced(function* (environment: Environment, folder?: string) {
  const cwd = folder ?? (yield* temporaryFolder)
  return yield* startCommand({ file: node, args: [join(root, "src/main.ts")], cwd }, environment)
})

/** Starts the program by another command, as `start` does. */
export const startCommand = Effect.fnUntraced(function* ({ args, cwd, file }: Command, environment: Environment) {
  const scratch = yield* temporaryFolder
  const exited = yield* Deferred.make<void>()
  const ended = yield* Deferred.make<End>()
  const address = yield* Deferred.make<string>()
  let output = ""
  let stdout = ""
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const spawned = spawn(file, args, {
        cwd,
        env: { ...defaults, TMPDIR: scratch, ...environment },
        stdio: ["ignore", "pipe", "pipe"]
      })
      running.add(spawned)
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
      spawned.once("exit", () => {
        running.delete(spawned)
        Deferred.doneUnsafe(exited, Effect.void)
      })
      spawned.once("close", (code, signal) => Deferred.doneUnsafe(ended, Effect.succeed({ code, signal })))
      return spawned
    }),
    (spawned) =>
      Effect.andThen(
        Effect.sync(() => spawned.kill("SIGKILL")),
        // What it has started may keep its output open.
        Deferred.await(exited)
      )
  )
  const notListening = (end?: End) => Effect.suspend(() => new NotListening({ end, output }))
  return {
    pid: child.pid ?? 0,
    /** Everything that it has written so far. */
    output: () => output,
    /** Its standard output so far. */
    stdout: () => stdout,
    ended: Deferred.await(ended),
    kill: (signal: NodeJS.Signals) => Effect.sync(() => void child.kill(signal)),
    /** The address of its log line, reachable from here. */
    address: Deferred.await(address).pipe(
      Effect.raceFirst(Effect.flatMap(Deferred.await(ended), notListening)),
      Effect.timeoutOrElse({ duration: "200 seconds", orElse: () => notListening() })
    )
  }
})

/** A started program. */
export type Process = Effect.Success<ReturnType<typeof startCommand>>

/** Starts the program where it must not run. Returns its end. */
export const startToEnd = Effect.fnUntraced(function* (environment: Environment) {
  const { address, ended, output } = yield* start(environment)
  const end = yield* Effect.as(address, { code: null, signal: null }).pipe(Effect.catchTag("NotListening", () => ended))
  return { ...end, output: output() }
}, Effect.scoped)

/** The processes that a process has started. */
export const childrenOf = (pid: number) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number)
