/**
 * `serve` is the service: it says the same, stops at the same signals, and ends with the same codes.
 *
 * @module-tag long
 */
import { execFile } from "node:child_process"
import { createServer, type Server } from "node:net"
import { join } from "node:path"
import { assert, describe, it as test, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as Client from "../../support/Client.ts"
import * as Process from "../../support/Process.ts"
import { options } from "../../support/Service.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const root = join(import.meta.dirname, "../../..")
const node = join(root, "node_modules/.bin/node")
const program = join(root, "src/cli.ts")

const serve = (environment: Process.Environment) =>
  Effect.flatMap(Process.temporaryFolder, (cwd) =>
    Process.startCommand({ file: node, args: [program, "serve"], cwd }, environment)
  )

/** A server that accepts, and never answers: its port, and an effect that ends once somebody has connected. */
const silent = Effect.map(
  Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const server = createServer().listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  ),
  (server) => {
    const address = server.address()
    const connected = Effect.callback<void>((resume) => void server.once("connection", () => resume(Effect.void)))
    return { port: address === null || typeof address === "string" ? 0 : address.port, connected }
  }
)

layer(TestDatabase.layerDemo, options)("serve", (it) => {
  it.effect.each([
    { signal: "SIGTERM", processes: "1" },
    { signal: "SIGINT", processes: "2" }
  ] as const)("runs $processes processes until $signal, and ends with 0", ({ processes, signal }) =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const service = yield* serve({ DATABASE_URL: url, PROCESSES: processes })
      const address = yield* service.address
      const client = yield* Client.make(address)
      const ready = yield* client.call({ method: "GET", path: "/api/v1/health/ready", headers: {} })
      assert.strictEqual(ready.status, 200)
      yield* service.kill(signal)
      assert.deepStrictEqual(yield* service.ended, { code: 0, signal: null })
    })
  )
})

describe.concurrent("The command line", () => {
  test.live("ends with 1 and a line where `serve` cannot start", () =>
    Effect.gen(function* () {
      const service = yield* serve({ DELETION_DELAY: "soon" })
      assert.deepStrictEqual(yield* service.ended, { code: 1, signal: null })
      assert.match(service.output(), /^The configuration is wrong\. DELETION_DELAY[^\n]+\n$/)
    }).pipe(Effect.scoped)
  )

  test.live.each(["SIGTERM", "SIGINT"] as const)("ends another command with the code of %s", (signal) =>
    Effect.gen(function* () {
      const cwd = yield* Process.temporaryFolder
      const hanging = yield* silent
      const command = yield* Process.startCommand(
        {
          file: node,
          args: [program, "get", "organization", "--url", `http://127.0.0.1:${hanging.port}`, "--api-key", "k"],
          cwd
        },
        {}
      )
      yield* hanging.connected
      yield* command.kill(signal)
      assert.deepStrictEqual(yield* command.ended, { code: signal === "SIGTERM" ? 143 : 130, signal: null })
    }).pipe(Effect.scoped)
  )

  test.live("completes its words in bash", () =>
    Effect.gen(function* () {
      const script = `
        source <(${node} ${program} --completions bash)
        complete_as() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMPREPLY=()
          _practice_data practice-data "\${COMP_WORDS[COMP_CWORD]}" "\${COMP_WORDS[COMP_CWORD-1]}"; echo "\${COMPREPLY[@]}"; }
        complete_as practice-data ke
        complete_as practice-data tasks list --state de
        complete_as practice-data search con`
      const words = yield* Effect.callback<string>((resume) => {
        execFile("bash", ["-c", script], (_, stdout) => resume(Effect.succeed(stdout)))
      })
      assert.deepStrictEqual(words.trim().split("\n"), ["keys", "dead", "consumption-logs"])
    })
  )
})
