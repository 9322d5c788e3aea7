/** The command `sync` as a process of its own. */
import { type ChildProcess, spawn } from "node:child_process"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Deferred, Effect } from "effect"
import { temporaryFolder } from "../../../support/Process.ts"

const root = join(import.meta.dirname, "../../../..")

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** The lines of JSON that it has told. */
export const eventsOf = (stdout: string): ReadonlyArray<Readonly<Record<string, unknown>>> =>
  stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))

const read = (stream: ChildProcess["stdout"]) => {
  let text = ""
  stream?.setEncoding("utf8").on("data", (piece: string) => (text += piece))
  return () => text
}

/** Starts it with these variables alone. When the scope closes, it is gone. */
export const start = Effect.fnUntraced(function* (
  environment: Readonly<Record<string, string>>,
  args: ReadonlyArray<string>
) {
  const cwd = yield* temporaryFolder
  const ended = yield* Deferred.make<Ended>()
  const opened = yield* Deferred.make<void>()
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const started = spawn(join(root, "node_modules/.bin/node"), [join(root, "src/cli.ts"), "sync", ...args], {
        cwd,
        env: { NODE_COMPILE_CACHE: join(tmpdir(), "node-compile-cache"), ...environment },
        stdio: ["ignore", "pipe", "pipe"]
      })
      const [stdout, stderr] = [read(started.stdout), read(started.stderr)]
      started.stdout.once("data", () => Deferred.doneUnsafe(opened, Effect.void))
      started.once("close", (code, signal) =>
        Deferred.doneUnsafe(ended, Effect.succeed({ code, signal, stdout: stdout(), stderr: stderr() }))
      )
      return { process: started, stdout }
    }),
    (started) =>
      Effect.andThen(
        Effect.sync(() => started.process.kill("SIGKILL")),
        Deferred.await(ended)
      )
  )
  return {
    ended: Deferred.await(ended),
    /** Once it has opened its target, and said so. */
    opened: Deferred.await(opened),
    stdout: child.stdout,
    kill: (signal: NodeJS.Signals) => Effect.sync(() => void child.process.kill(signal))
  }
})

/** Runs it to its end. */
export const run = (environment: Readonly<Record<string, string>>, args: ReadonlyArray<string>) =>
  Effect.scoped(Effect.flatMap(start(environment, args), ({ ended }) => ended))
