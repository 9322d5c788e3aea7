/**
 * Callers that hang up: nobody else waits longer for it.
 *
 * @module-tag long
 */
import { connect } from "node:net"
import { assert, it } from "@effect/vitest"
import { Array, Effect, Layer } from "effect"
import { loadDemoData } from "../../../src/demo/Load.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import * as Client from "../../support/Client.ts"
import * as Process from "../../support/Process.ts"
import { startUsed } from "../../support/usedFolder.ts"

/** Sends a search and hangs up before the answer. */
const hangUp = (address: string, after: number) =>
  Effect.callback<void>((resume) => {
    const { hostname, port } = new URL(address)
    const body = '{"limit":1000}'
    const headers = Object.entries({
      ...Client.headersOf("oakridge"),
      host: hostname,
      "content-length": String(body.length)
    }).map(([name, value]) => `${name}: ${value}\r\n`)
    const socket = connect(Number(port), hostname, () => {
      socket.write(`POST /api/v3/consumption-logs/search HTTP/1.1\r\n${headers.join("")}\r\n${body}`)
      // oxlint-disable-next-line effecttsgo/global-timers -- a client of the platform
      setTimeout(() => socket.destroy(), after)
    })
    socket.once("error", () => undefined).once("close", () => resume(Effect.void))
  })

const nobodyWaits = Effect.fnUntraced(function* (environment: Process.Environment) {
  const { address, output } = yield* startUsed(environment)
  const url = yield* address
  const client = Client.patient(yield* Client.make(url, 8))
  assert.strictEqual((yield* client.ask("/charges/search", { limit: 1 })).status, 200)
  const before = output().length
  for (let round = 0; round < 3; round++) {
    yield* Effect.forEach(Array.range(0, 99), (n) => hangUp(url, n % 20), { concurrency: "unbounded" })
    const answers = yield* Effect.forEach(Array.range(1, 8), () => client.ask("/charges/search", { limit: 1 }), {
      concurrency: "unbounded"
    })
    assert.deepStrictEqual([...new Set(answers.map(({ status }) => status))], [200])
  }
  assert.notMatch(output().slice(before), /WARN|ERROR/)
})

it.live("a hundred callers that hang up keep nobody else from an answer on the embedded database", () =>
  nobodyWaits({})
)

it.live("a hundred callers that hang up keep nobody else from an answer on Postgres", () =>
  Effect.gen(function* () {
    const { sql, url } = yield* TestDatabase
    yield* loadDemoData(sql)
    yield* nobodyWaits({ DATABASE_URL: url })
  }).pipe(Effect.provide(Layer.fresh(TestDatabase.layer)))
)
