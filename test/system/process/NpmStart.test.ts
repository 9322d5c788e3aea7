/**
 * What the README starts: a signal to any part of it ends all of it.
 *
 * @module-tag long
 */
import { spawn } from "node:child_process"
import { createServer } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Config, Deferred, Effect } from "effect"
import { eventually } from "../../support/eventually.ts"
import * as Process from "../../support/Process.ts"

const root = join(import.meta.dirname, "../../..")

/** Starts the service with npm, in a process group of its own, as a shell does. */
const npmStart = Effect.gen(function* () {
  const PATH = yield* Config.String("PATH")
  const ended = yield* Deferred.make<Process.End>()
  let output = ""
  const npm = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const spawned = spawn("npm", ["start"], {
        cwd: root,
        detached: true,
        env: { PATH, HOST: "127.0.0.1", PORT: "0", DATABASE_URL: "postgres://nobody@127.0.0.1:1/nothing" },
        stdio: ["ignore", "pipe", "pipe"]
      })
      spawned.stdout.setEncoding("utf8").on("data", (text: string) => (output += text))
      spawned.once("exit", (code, signal) => Deferred.doneUnsafe(ended, Effect.succeed({ code, signal })))
      return spawned
    }),
    ({ pid = 0 }) => Effect.ignore(Effect.try(() => process.kill(-pid, "SIGKILL")))
  )
  const portOf = () => Number(/Listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(output)?.[1] ?? 0)
  yield* eventually(
    "an address",
    Effect.sync(() => portOf() > 0)
  )
  return { pid: npm.pid ?? 0, port: portOf(), ended: Deferred.await(ended) }
})

const isFree = (port: number) =>
  Effect.callback<boolean>((resume) => {
    const probe = createServer()
      .once("error", () => resume(Effect.succeed(false)))
      .listen(port, "127.0.0.1", () => probe.close(() => resume(Effect.succeed(true))))
  })

describe("npm start", () => {
  it.live.each([
    { what: "SIGTERM to npm", signal: "SIGTERM", group: false },
    { what: "SIGINT to npm", signal: "SIGINT", group: false },
    { what: "SIGTERM to the process group", signal: "SIGTERM", group: true },
    { what: "SIGINT to the process group, as Ctrl-C sends it,", signal: "SIGINT", group: true }
  ] as const)("$what ends the service and npm with code 0, and leaves the port free", ({ signal, group }) =>
    Effect.gen(function* () {
      const { ended, pid, port } = yield* npmStart
      assert.isFalse(yield* isFree(port))
      process.kill(group ? -pid : pid, signal)
      assert.deepStrictEqual(yield* ended, { code: 0, signal: null })
      assert.isTrue(yield* isFree(port))
    })
  )
})
