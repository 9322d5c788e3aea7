/** What the README starts is stopped. */
import { spawn } from "node:child_process"
import { join } from "node:path"
import { Deferred, Effect, Option } from "effect"
import { eventually } from "../../../test/blackbox/support/eventually.ts"
import { temporaryFolder } from "../../../test/blackbox/support/Process.ts"
import * as OwnPostgres from "../../../test/faults/support/OwnPostgres.ts"
import { atMost, make, verdict } from "../Scenario.ts"
import * as Http1 from "../support/Http1.ts"
import * as Proc from "../support/Proc.ts"
import * as Service from "../support/Service.ts"

const root = join(import.meta.dirname, "../../..")

/** Starts `npm start` in a process group of its own, of which nothing is left when the scope closes. */
const npmStart = Effect.fnUntraced(function* (environment: Readonly<Record<string, string>>) {
  const ended = yield* Deferred.make<number | null>()
  const npm = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn("npm", ["start"], {
        cwd: root,
        detached: true,
        stdio: "ignore",
        // oxlint-disable-next-line effecttsgo/process-env -- npm needs the environment of whoever calls it
        env: { ...process.env, ...environment }
      })
      child.once("exit", (code) => Deferred.doneUnsafe(ended, Effect.succeed(code)))
      return child
    }),
    ({ pid = 0 }) => Proc.signal(-pid, "SIGKILL")
  )
  return { pid: npm.pid ?? 0, ended: Deferred.await(ended) }
})

/** The status of the readiness check, or nothing where nothing listens. */
const statusAt = (port: number) =>
  Http1.open(port).pipe(
    Effect.flatMap((connection) => Effect.ensuring(connection.ask(Http1.bytesOf(Service.ready)), connection.close)),
    Effect.map(({ status }) => status),
    Effect.catch(() => Effect.undefined)
  )

const stop = Effect.fnUntraced(function* (signal: "SIGTERM" | "SIGINT") {
  const port = yield* OwnPostgres.freePort
  const scratch = yield* temporaryFolder
  const { ended, pid } = yield* npmStart({
    PORT: String(port),
    HOST: "127.0.0.1",
    DATA_DIR: "memory",
    TMPDIR: scratch
  })
  yield* eventually(
    "it is ready",
    Effect.map(statusAt(port), (status) => status === 200)
  )
  // A terminal signals all that runs in it; anything else that stops a process signals the one that it started.
  yield* Proc.signal(signal === "SIGINT" ? -pid : pid, signal)
  const code = Option.getOrElse(yield* Effect.timeoutOption(ended, "15 seconds"), () => "none, it did not end")
  yield* Effect.sleep("500 millis")
  const left = yield* Proc.groupOf(pid)
  const status = yield* statusAt(port)
  return [
    { text: `${signal}: exit code ${code}`, isKept: code === 0 },
    atMost(0, "processes left", left.length),
    { text: status === undefined ? "the port is free" : "the port is taken", isKept: status === undefined }
  ]
})

export const stopping = make({
  name: "stopping",
  done: "`npm start` gets SIGTERM, and another one is stopped by Ctrl-C: SIGINT to all of its terminal",
  promise: "it ends with 0 within 15 s, no process is left, and the port is free",
  run: Effect.fnUntraced(function* () {
    const seen = yield* Effect.forEach(["SIGTERM", "SIGINT"] as const, stop, { concurrency: "unbounded" })
    return verdict(...seen.flat())
  })
})
