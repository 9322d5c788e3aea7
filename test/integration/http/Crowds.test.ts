/** The bounds of what many clients leave with a server, and others that are served nevertheless. */
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import type { IncomingMessage } from "node:http"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { beginReading } from "../../../src/http/ServedRequest.ts"
import { eventually } from "../../support/eventually.ts"
import * as Listening from "../../support/Listening.ts"
import { exchange, get, open, statusesOf } from "../../support/Raw.ts"

const opened = Listening.ordered({ maxConnections: 1000 })

/** Counts the requests that are parsed until the scope closes. */
const parsing = Effect.gen(function* () {
  let parsed = 0
  const count = () => (parsed += 1)
  subscribe("http.server.request.start", count)
  yield* Effect.addFinalizer(() => Effect.sync(() => unsubscribe("http.server.request.start", count)))
  return () => parsed
})

const connected = (port: number) => Effect.map(open(`http://127.0.0.1:${port}`), ({ socket }) => socket)

it.live("A client that sends nothing ahead is served, however much others sent", () =>
  Effect.gen(function* () {
    const { port, server } = yield* opened
    const parsed = yield* parsing
    for (let others = 0; others < 200; others++) (yield* connected(port)).write(get("/").repeat(50))
    const { received, send } = yield* open(`http://127.0.0.1:${port}`)
    yield* eventually("all that may wait", () => parsed() === 10_000)
    yield* send(get("/"))
    yield* eventually("one more", () => parsed() === 10_001)
    server.on("request", (_, response) => response.end())
    yield* eventually("its response", () => statusesOf(received())[0] === 200)
  })
)

it.live(
  "Requests that were sent ahead count by the sizes of their heads: beyond a bound, their clients are disconnected",
  () =>
    Effect.gen(function* () {
      const { port, server } = yield* opened
      server.on("request", () => {})
      const [small, large] = [get("/"), get("/", `X: ${"a".repeat(15_000)}\r\n`)]
      const sockets = yield* Effect.forEach(Array.from({ length: 900 }), () => connected(port))
      yield* eventually("all connections", () => server.open === 900)
      for (const socket of sockets) socket.write(small)
      yield* eventually("a request of each", () => server.inFlight === 900)
      for (const socket of sockets) socket.write(large)
      // Each counts 15, and 10,000 is the bound.
      yield* eventually("the ends of others", () => server.open === 666)
    })
)

it.live("A body that nobody reads counts until its connection is closed, also after a CONNECT", () =>
  Effect.gen(function* () {
    const { port, server } = yield* opened
    let received: IncomingMessage | undefined
    server.on("request", (request) => (received = request))
    const [bytes, unread] = ["Content-Length: 60000\r\n", " ".repeat(60_000)]
    const end = "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"
    // Together they have more bytes than all bodies may.
    yield* Effect.forEach(
      Array.from({ length: 150 }),
      () => exchange(`http://127.0.0.1:${port}`, `GET / HTTP/1.1\r\n${bytes}\r\n${unread}${end}`),
      { concurrency: "unbounded" }
    )
    yield* eventually("their ends", () => server.open === 0)
    const socket = yield* connected(port)
    socket.write(get("/", bytes) + unread)
    yield* eventually("the whole body", () => received?.complete === true)
    assert.isTrue(received !== undefined && beginReading(received))
  })
)

it.live("A body that nobody reads counts by its length, in whatever pieces it comes", () =>
  Effect.gen(function* () {
    const { port, server } = yield* opened
    const received: Array<IncomingMessage> = []
    server.on("request", (request) => received.push(request))
    const piece = `1770\r\n${" ".repeat(6000)}\r\n`
    const chunked = `${get("/", "Transfer-Encoding: chunked\r\n")}${piece.repeat(10)}0\r\n\r\n`
    for (let others = 0; others < 190; others++) (yield* connected(port)).write(chunked)
    yield* eventually(
      "more bytes than all bodies may have",
      () => received.every(({ complete }) => complete) && received.length === 190
    )
    assert.isFalse(received.every(beginReading))
  })
)

it.live("Requests that were sent ahead begin in their turn: few between two turns of the event loop", () =>
  Effect.gen(function* () {
    const { port, server } = yield* opened
    const connections = 100
    const all = 5 * connections
    let begun = 0
    let most = 0
    // The first one of each connection begins with the handler.
    let before = connections
    const turn = () => {
      most = Math.max(most, begun - before)
      before = Math.max(before, begun)
      if (begun < all) setImmediate(turn)
    }
    const parsed = yield* parsing
    for (let each = 0; each < connections; each++) (yield* connected(port)).resume().write(get("/").repeat(5))
    yield* eventually("all requests", () => parsed() === all)
    server.on("request", (_, response) => {
      begun += 1
      response.end()
    })
    turn()
    yield* eventually("all responses", () => begun === all)
    assert.isAtMost(most, 32)
  })
)
