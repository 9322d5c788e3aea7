/** What the README starts is stopped. */
import { spawn } from "node:child_process"
import { join } from "node:path"
import { Deferred, Effect } from "effect"
import { eventually } from "../../../test/blackbox/support/eventually.ts"
import { temporaryFolder } from "../../../test/blackbox/support/Process.ts"
import * as OwnPostgres from "../../../test/faults/support/OwnPostgres.ts"
import { atMost, note, make, verdict } from "../Scenario.ts"
import * as Callers from "../support/Callers.ts"
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

const stopping = (signal: "SIGTERM" | "SIGINT", done: string) =>
  make({
    name: `stop-${signal.toLowerCase()}`,
    done,
    promise: "it ends with 0 within 15 s, no process is left, and the port is free",
    run: Effect.fnUntraced(function* () {
      const port = yield* OwnPostgres.freePort
      const scratch = yield* temporaryFolder
      const { ended, pid } = yield* npmStart({
        PORT: String(port),
        HOST: "127.0.0.1",
        DATA_DIR: "memory",
        TMPDIR: scratch
      })
      const plan = { ports: [port], callers: 1, total: 1, patience: 2000, keepAlive: false } as const
      const answers = Effect.map(Callers.run({ ...plan, requests: [Service.ready] }), ([sample]) => sample?.status ?? 0)
      yield* eventually(
        "it is ready",
        Effect.map(answers, (status) => status === 200)
      )
      // A terminal signals all that runs in it; anything else that stops a process signals the one that it started.
      yield* Proc.signal(signal === "SIGINT" ? -pid : pid, signal)
      const code = yield* Effect.timeoutOption(ended, "15 seconds")
      yield* Effect.sleep("500 millis")
      const left = yield* Proc.groupOf(pid)
      const status = yield* answers
      return verdict(
        {
          text: code._tag === "Some" ? `exit code ${code.value}` : "did not end",
          isKept: code._tag === "Some" && code.value === 0
        },
        atMost(0, "processes left", left.length),
        status === Callers.noAnswer.refused ? note("the port is free") : atMost(0, "answers on the port", 1)
      )
    })
  })

export const stoppings = [
  stopping("SIGTERM", "`npm start` gets SIGTERM"),
  stopping("SIGINT", "`npm start` is stopped by Ctrl-C: SIGINT to all of its terminal")
]
