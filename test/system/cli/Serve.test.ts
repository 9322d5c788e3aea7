/**
 * The program of the command line: `serve` is the service, and any command ends with the code of its signal.
 *
 * @module-tag long
 */
import { createServer, type Server } from "node:net"
import { assert, describe, it as test, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as Client from "../../support/Client.ts"
import { start } from "../../support/cli.ts"
import { options } from "../../support/Service.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

/** A server that accepts, and never answers: its port, and an effect that ends with the first connection. */
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
    ["1", "SIGTERM"],
    ["2", "SIGINT"]
  ] as const)("runs %s processes until %s, and ends with 0", ([processes, signal]) =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const service = yield* start({ DATABASE_URL: url, PROCESSES: processes }, ["serve"])
      const client = yield* Client.make(yield* service.address)
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
      const service = yield* start({ DELETION_DELAY: "soon" }, ["serve"])
      assert.deepStrictEqual(yield* service.ended, { code: 1, signal: null })
      assert.match(service.output(), /^The configuration is wrong\. DELETION_DELAY[^\n]+\n$/)
    }).pipe(Effect.scoped)
  )

  test.live.each([
    ["SIGTERM", 143],
    ["SIGINT", 130]
  ] as const)("ends another command at %s with %i", ([signal, code]) =>
    Effect.gen(function* () {
      const { connected, port } = yield* silent
      const variables = { PRACTICE_DATA_URL: `http://127.0.0.1:${port}`, PRACTICE_DATA_API_KEY: "k" }
      const command = yield* start(variables, ["get", "organization"])
      yield* connected
      yield* command.kill(signal)
      assert.deepStrictEqual(yield* command.ended, { code, signal: null })
    }).pipe(Effect.scoped)
  )
})
