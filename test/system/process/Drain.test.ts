/**
 * A stop signal where requests keep coming: nobody's request is lost, and a load balancer has time to see it.
 *
 * @module-tag long
 */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Schema } from "effect"
import * as Client from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import * as Process from "../../support/Process.ts"
import * as Raw from "../../support/Raw.ts"
import { startUsed } from "../../support/usedFolder.ts"

// Nothing here needs a database: without one, the answers come all the same.
const DATABASE_URL = "postgres://nobody@127.0.0.1:1/nothing"

const headers = Client.headersOf("oakridge")

const calls: ReadonlyArray<Client.Call> = [
  { path: "/api/v1/health", method: "GET" },
  { path: "/api/v1/health/ready", method: "GET" },
  { path: "/api/v3/openapi.json", method: "GET" },
  { path: "/unknown" },
  { path: "/api/v3/charges/search", method: "PUT" },
  { path: "/api/v3/charges/search", headers: { "content-type": "application/json" }, body: "{}" },
  { path: "/api/v3/charges/search", headers: { ...headers, "content-type": "text/plain" }, body: "{}" },
  { path: "/api/v3/charges/search", headers, body: "{}" }
]

const started = Effect.fnUntraced(function* (drain: string, environment: Process.Environment = {}) {
  const program = yield* startUsed({ DATABASE_URL, DRAIN: drain, ...environment })
  const client = yield* Client.make(yield* program.address)
  yield* client.call({ path: "/unknown" })
  const ready = Effect.map(client.call({ path: "/api/v1/health/ready", method: "GET" }), ({ text }) => text)
  return { ...program, client, ready }
})

const decodeCursor = Schema.decodeEffect(Schema.fromJsonString(Schema.Struct({ cursor: Schema.String })))

const connectionOf = ({ headers: { connection = "" } }: Client.Answer) => String(connection).toLowerCase()

describe.concurrent("While it drains, a stopped program", () => {
  it.live("answers everything, closes the connection of each answer, and then ends with code 0", () =>
    Effect.gen(function* () {
      const { client, ended, kill, output } = yield* started("15 seconds")
      const before = yield* Effect.forEach(calls, client.call)
      for (const answer of before) assert.notStrictEqual(connectionOf(answer), "close")
      yield* kill("SIGTERM")
      yield* eventually(
        "it drains",
        Effect.map(client.call({ path: "/unknown" }), (a) => connectionOf(a) === "close")
      )
      const after = yield* Effect.forEach(calls, client.call)
      assert.deepStrictEqual(
        after.map(({ status, headers: { connection } }) => [status, connection]),
        before.map(({ status }) => [status, "close"])
      )
      const newcomer = yield* Client.make(client.address)
      const { status, text } = yield* newcomer.call({ path: "/api/v1/health/ready", method: "GET" })
      assert.deepStrictEqual([status, text], [503, `{"ready":false}`])
      assert.deepStrictEqual(yield* ended, { code: 0, signal: null }, output())
    })
  )

  it.live("answers every request of a pipeline that came before the answer which closes", () =>
    Effect.gen(function* () {
      const { client, kill } = yield* started("15 seconds")
      yield* kill("SIGTERM")
      yield* eventually(
        "it drains",
        Effect.map(client.call({ path: "/unknown" }), (a) => connectionOf(a) === "close")
      )
      const received = yield* Raw.exchange(client.address, "GET /unknown HTTP/1.1\r\nHost: a\r\n\r\n".repeat(20))
      assert.lengthOf(received.match(/404 Not Found/g) ?? [], 20)
      assert.lengthOf(received.match(/connection: close/gi) ?? [], 1)
    })
  )

  it.live("answers readers that wait for changes at once", () =>
    Effect.gen(function* () {
      const { client, ended, kill, output } = yield* started("1 second", { DATABASE_URL: "" })
      const changes = (body: object) =>
        client.call({ path: "/api/v3/pets/changes", headers, body: JSON.stringify(body) })
      const { cursor } = yield* decodeCursor((yield* changes({})).text)
      const waiting = yield* Effect.forkChild(changes({ cursor, wait: 20 }), { startImmediately: true })
      yield* Effect.sleep("300 millis")
      assert.isUndefined(waiting.pollUnsafe())
      const stopped = yield* Clock.currentTimeMillis
      yield* kill("SIGTERM")
      const { status, text } = yield* Fiber.join(waiting)
      assert.deepStrictEqual([status, text], [200, `{"body":[],"removed":[],"cursor":"${cursor}","has_more":false}`])
      assert.deepStrictEqual(yield* ended, { code: 0, signal: null }, output())
      assert.isBelow((yield* Clock.currentTimeMillis) - stopped, 10_000)
    })
  )

  it.live("takes signals of one moment for one, as npm passes on what a terminal has sent already", () =>
    Effect.gen(function* () {
      const { ended, kill, output } = yield* started("1 second")
      yield* Effect.andThen(kill("SIGINT"), kill("SIGTERM"))
      assert.deepStrictEqual(yield* ended, { code: 0, signal: null }, output())
    })
  )

  it.live("ends at once at a second signal", () =>
    Effect.gen(function* () {
      const { ended, kill } = yield* started("10 minutes")
      yield* kill("SIGTERM")
      yield* Effect.sleep("1 second")
      yield* kill("SIGTERM")
      assert.deepStrictEqual(yield* ended, { code: 143, signal: null })
    })
  )
})

describe("A client that keeps its connections", () => {
  it.live("loses no request when the program is stopped and started on the same port", () =>
    Effect.gen(function* () {
      const first = yield* started("2 seconds")
      const lost: Array<Client.NoAnswer> = []
      let responses = 0
      const client = yield* Client.make(first.client.address, 16)
      const ask = client.call({ path: "/unknown" }).pipe(
        Effect.tap(() => Effect.sync(() => (responses += 1))),
        Effect.catchTag("NoAnswer", (error) =>
          Effect.andThen(
            // Between the end of one and the start of the next, nobody listens.
            Effect.sync(() => String(error.cause).includes("ECONNREFUSED") || lost.push(error)),
            Effect.sleep("10 millis")
          )
        )
      )
      yield* Effect.forkScoped(
        Effect.all(
          Array.from({ length: 16 }, () => Effect.forever(ask)),
          { concurrency: 16 }
        )
      )
      for (let times = 0, program = first; times < 2; times++) {
        const before = responses
        yield* eventually(
          "answers",
          Effect.sync(() => responses > before + 100)
        )
        yield* program.kill("SIGTERM")
        assert.deepStrictEqual(yield* program.ended, { code: 0, signal: null }, program.output())
        program = yield* started("2 seconds", { PORT: new URL(client.address).port })
      }
      assert.deepStrictEqual(lost, [])
    })
  )
})
