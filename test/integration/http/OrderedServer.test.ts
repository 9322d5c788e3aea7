/** Requests that a client sends ahead on one connection: one at a time is worked on. */
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import type { ServerResponse } from "node:http"
import { assert, describe, it, vi } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { identify } from "../../../src/http/ServedRequest.ts"
import type { RequestFacts } from "../../../src/observability/RequestFacts.ts"
import { ownMemory } from "../../../src/process/Package.ts"
import { eventually } from "../../support/eventually.ts"
import * as Listening from "../../support/Listening.ts"
import { type Connection, exchange, get, open, statusesOf } from "../../support/Raw.ts"

const opened = Listening.ordered()

/** Connections are swept every 20 ms. */
const briefly = { headersTimeout: Duration.millis(100), idleTimeout: Duration.millis(100) }

const listening = Effect.map(opened, ({ port, server }) => {
  const begun: Array<ServerResponse> = []
  server.on("request", (_, response) => begun.push(response))
  return { server, port, begun }
})

/** Chunks of a body. */
const chunks = (count: number, size: number) => `${size.toString(16)}\r\n${"1".repeat(size)}\r\n`.repeat(count)

const connected = (port: number) => Effect.map(open(`http://127.0.0.1:${port}`), ({ socket }) => socket)

/** A whole exchange on another connection, before which anything that was to happen has happened. */
const passes = (port: number, begun: Array<ServerResponse>) =>
  Effect.gen(function* () {
    const before = begun.length
    const socket = yield* connected(port)
    socket.write(get("/passes"))
    yield* eventually("a request of another connection", () => begun.length > before)
    begun.pop()?.end()
  }).pipe(Effect.scoped, Effect.repeat({ times: 3 }))

const urls = (begun: ReadonlyArray<ServerResponse>) => begun.map(({ req }) => req.url)

describe("A connection", () => {
  it.live("that comes before the handler is there waits for it", () =>
    Effect.gen(function* () {
      const { port, server } = yield* opened
      const { received, send } = yield* open(`http://127.0.0.1:${port}`)
      let parsed = 0
      const count = () => (parsed += 1)
      subscribe("http.server.request.start", count)
      yield* Effect.addFinalizer(() => Effect.sync(() => unsubscribe("http.server.request.start", count)))
      yield* send(get("/1") + get("/2"))
      yield* eventually("both requests", () => parsed === 2)
      server.on("request", ({ url }, response) => response.end(`answer to ${url}`))
      yield* eventually("both answers", () => /answer to \/1[^]*answer to \/2/.test(received()))
    })
  )

  it.live("has one request worked on, and the next when its answer is finished, in their order", () =>
    Effect.gen(function* () {
      const { begun, port, server } = yield* listening
      const socket = yield* connected(port)
      socket.write(get("/1") + get("/2") + get("/3"))
      for (const expected of [["/1"], ["/1", "/2"], ["/1", "/2", "/3"]]) {
        yield* eventually("the next request", () => begun.length === expected.length)
        assert.strictEqual(server.inFlight, 1)
        yield* passes(port, begun)
        assert.deepStrictEqual(urls(begun), expected)
        begun.at(-1)?.end("done")
      }
    })
  )

  it.live("has no further answer begun while its client does not read, and gets all of them when it does", () =>
    Effect.gen(function* () {
      const { begun, port } = yield* listening
      const socket = yield* connected(port)
      const page = Buffer.alloc(32 * 1024 * 1024)
      socket.pause()
      socket.write(get("/1") + get("/2"))
      yield* eventually("a request", () => begun.length === 1)
      begun[0]?.end(page)
      yield* passes(port, begun)
      assert.deepStrictEqual(urls(begun), ["/1"])
      socket.resume()
      yield* eventually("the next request", () => begun.length === 2)
    })
  )

  it.live("whose client does not read is closed where all unread bytes are too many: of the sender with the most", () =>
    Effect.gen(function* () {
      const { begun, port } = yield* listening
      // Not in memory: nobody writes it.
      const page = Buffer.alloc(ownMemory() / 8 / 6 - 4096)
      for (const [index, key] of ["other", "many", "many", "many", "many", "last"].entries()) {
        const socket = yield* connected(port)
        socket.pause()
        socket.write(get("/", `Authorization: Bearer ${key}\r\n`))
        yield* eventually("a request", () => begun.length === index + 1)
        begun[index]?.end(page)
        yield* passes(port, begun)
      }
      assert.isFalse(begun.some(({ req }) => req.socket.destroyed))
      const socket = yield* connected(port)
      socket.write(get("/", "Authorization: Bearer another\r\n"))
      socket.pause()
      yield* eventually("a request", () => begun.length === 7)
      begun[6]?.end(page)
      yield* eventually("the end of one", () => begun.some(({ req }) => req.socket.destroyed))
      yield* passes(port, begun)
      assert.strictEqual(
        begun.findIndex(({ req }) => req.socket.destroyed),
        1
      )
      assert.lengthOf(
        begun.filter(({ req }) => req.socket.destroyed),
        1
      )
    })
  )

  it.live("without a request is closed, also if it was refused and never reads, but not one that waits", () =>
    Effect.gen(function* () {
      const { port, server } = yield* Listening.ordered(briefly)
      server.on("request", () => {})
      const [trickling, refused, waiting] = [yield* connected(port), yield* connected(port), yield* connected(port)]
      waiting.write(get("/1"))
      refused.pause()
      refused.write("GET / HTTP/1.1\r\n\r\n")
      yield* eventually("the end of two", () => {
        for (const socket of [trickling, refused]) if (socket.writable) socket.write("\r\n")
        return trickling.closed && server.open === 1
      })
      assert.isFalse(waiting.closed)
    })
  )

  it.live("that was refused is closed two seconds later, however long others may be idle", () =>
    Effect.gen(function* () {
      const { port, server } = yield* opened
      let isRefused = false
      server.once("refused", () => (isRefused = true))
      const socket = yield* connected(port)
      socket.pause()
      socket.write("GET / HTTP/1.1\r\n\r\n")
      yield* eventually("its refusal", () => isRefused)
      const until = performance.now() + 2001
      const clock = vi.spyOn(performance, "now").mockImplementation(() => until)
      yield* Effect.addFinalizer(() => Effect.sync(() => clock.mockRestore()))
      yield* eventually("its end", () => server.open === 0)
    })
  )

  it.live("whose client left has its response closed, and one that only ended its side gets the response", () =>
    Effect.gen(function* () {
      const { port, server } = yield* Listening.ordered(briefly)
      const begun: Array<ServerResponse> = []
      server.on("request", (_, response) => begun.push(response))
      const left = yield* connected(port)
      left.write(get("/left"))
      yield* eventually("a request", () => begun.length === 1)
      left.destroy()
      const { closed, socket } = yield* open(`http://127.0.0.1:${port}`)
      socket.end(get("/ended"))
      yield* eventually("the other end", () => begun.length === 2 && begun[0]?.closed === true)
      begun[1]?.end("done")
      assert.match(yield* closed, /^(HTTP\/1\.1 100 Continue\r\n\r\n)*HTTP\/1\.1 200 OK\r\n[^]*done$/)
    })
  )

  it.live("has no more requests parsed than one read brought, however many its client sends", () =>
    Effect.gen(function* () {
      const { port, server } = yield* opened
      let waiting = 0
      let most = 0
      const count = () => (most = Math.max(most, (waiting += 1)))
      subscribe("http.server.request.start", count)
      yield* Effect.addFinalizer(() => Effect.sync(() => unsubscribe("http.server.request.start", count)))
      server.on("request", (_, response) => {
        waiting -= 1
        response.end()
      })
      const { received, send } = yield* open(`http://127.0.0.1:${port}`)
      yield* send(get("/", `X: ${"a".repeat(15_000)}\r\n`).repeat(300))
      yield* eventually("all responses", () => statusesOf(received()).length === 300)
      assert.isAtMost(most, 5)
    })
  )

  it.live("on which the body of a waiting request is invalid ends with 400 after the responses before it", () =>
    Effect.gen(function* () {
      const { begun, port } = yield* listening
      const { closed, send } = yield* open(`http://127.0.0.1:${port}`)
      const chunked = "Transfer-Encoding: chunked\r\n"
      yield* send(`${get("/1")}${get("/2", chunked)}0x0\r\n\r\n${get("/3")}`)
      yield* eventually("a request", () => begun.length === 1)
      begun[0]?.end("done")
      assert.deepStrictEqual(statusesOf(yield* closed), [200, 400])
      assert.deepStrictEqual(urls(begun), ["/1"])
    })
  )

  it.live(
    "whose body comes in small pieces is answered 400 and closed, but not a few, nor any number of 32 bytes",
    () =>
      Effect.gen(function* () {
        const { begun, port } = yield* listening
        const head = get("/", "Transfer-Encoding: chunked\r\n")
        const [small, large] = [yield* open(`http://127.0.0.1:${port}`), yield* connected(port)]
        large.write(`${head}${chunks(250, 1)}${chunks(9000, 32)}0\r\n\r\n`)
        yield* eventually("a request in larger pieces", () => begun[0]?.req.resume().complete === true)
        yield* small.send(head + chunks(2000, 24))
        assert.match(yield* small.closed, /^HTTP\/1\.1 400 [^]*\{"detail":"Bad Request"\}$/)
        assert.isFalse(large.closed)
      })
  )
})

/** The statuses of a connection after one more request on it. */
const ask = ({ received, send, socket }: Connection, key?: string) =>
  Effect.gen(function* () {
    const before = statusesOf(received()).length
    yield* send(get("/", key === undefined ? "" : `Authorization: Bearer ${key}\r\n`))
    yield* eventually("a response", () => statusesOf(received()).length > before || socket.destroyed)
    return statusesOf(received())
  })

/** A server whose handler knows the organization of any key that begins with `pda_`, and its connections. */
const shared = Effect.gen(function* () {
  const { port, server } = yield* opened
  server.on("request", (request, response) => {
    if (request.headers.authorization?.includes("pda_") === true) identify(request, "org_a")
    if (request.url === "/") response.end()
  })
  const connect = open(`http://127.0.0.1:${port}`)
  return { server, connect }
})

it.live("An API key holds a quarter of the connections: beyond, it is 503 a second later, and closed", () =>
  Effect.gen(function* () {
    const { connect, server } = yield* shared
    const refused: Array<RequestFacts> = []
    server.on("refused", (each: RequestFacts) => refused.push(each))
    const [first, second, third, other] = [yield* connect, yield* connect, yield* connect, yield* connect]
    yield* eventually("four connections", () => server.open === 4)
    assert.deepStrictEqual(yield* ask(first, "pda_a"), [200])
    assert.deepStrictEqual(yield* ask(second, "pda_a"), [200])
    const begun = performance.now()
    yield* third.send(get("/", "Authorization: bearer  pda_a\r\n"))
    assert.deepStrictEqual(yield* ask(other, "pda_b"), [200])
    assert.match(
      yield* third.closed,
      /^HTTP\/1\.1 503 [^]*\r\nretry-after: 1\r\n[^]*\{"detail":"Service Unavailable"\}$/
    )
    assert.isAbove(performance.now() - begun, 900)
    assert.deepInclude(refused[0], { status: 503, refusal: "load", organization: "org_a", path: "/" })
    // A connection of a proxy has a request of one key after that of another.
    assert.deepStrictEqual(yield* ask(other, "pda_a"), [200, 503])
    assert.deepStrictEqual(yield* ask(second, "pda_b"), [200, 200])
    assert.deepStrictEqual(yield* ask(yield* connect, "pda_a"), [200])
  })
)

it.live("Strangers hold half of the connections: beyond, each is served once", () =>
  Effect.gen(function* () {
    const { connect } = yield* shared
    const strangers = yield* Effect.forEach(Array.from({ length: 8 }), () => connect)
    for (const [index, each] of strangers.entries())
      assert.deepStrictEqual(yield* ask(each, index % 2 === 0 ? undefined : `made_up_${index}`), [200])
    const ofKey = yield* connect
    assert.deepStrictEqual(yield* ask(ofKey, "pda_a"), [200])
    ofKey.socket.destroy()
    const [first, second, third] = strangers
    if (first === undefined || second === undefined || third === undefined) return
    assert.deepStrictEqual(yield* ask(first), [200, 503])
    assert.deepStrictEqual(yield* ask(second, "made_up"), [200, 503])
    // A proxy has sent requests of strangers before.
    assert.deepStrictEqual(yield* ask(third, "pda_a"), [200, 200])
  })
)

it.live(
  "A new connection beyond the limit closes one that waits for its client: of a stranger first, of a key last",
  () =>
    Effect.gen(function* () {
      const { connect, server } = yield* shared
      const idle = yield* Effect.forEach(Array.from({ length: 8 }), () => connect)
      const [served, ofKey] = [yield* connect, yield* connect]
      yield* eventually("ten connections", () => server.open === 10)
      yield* served.send(get("/unanswered"))
      assert.deepStrictEqual(yield* ask(ofKey, "pda_a"), [200])
      const waiting = [...idle, ofKey]
      for (const [index, next] of waiting.entries()) {
        const { send } = yield* connect
        yield* send(get("/unanswered", `Authorization: Bearer pda_${index}\r\n`))
        yield* eventually("the end of one", () => next.socket.destroyed && server.inFlight === index + 2)
        assert.strictEqual(waiting.filter(({ socket }) => socket.destroyed).length, index + 1)
      }
      assert.strictEqual(yield* (yield* connect).closed, "")
      assert.isFalse(served.socket.destroyed)
    })
)

it.live(
  "Requests that wait are counted while they wait: not those that were answered, or whose connection closed",
  () =>
    Effect.gen(function* () {
      const { port, server } = yield* opened
      let answered = 0
      let unanswered: ServerResponse | undefined
      server.on("request", ({ url }, response) => {
        if (url === "/") response.end(String((answered += 1)))
        else unanswered = response
      })
      // Each round has a fifth of those that may wait, if each counted for good.
      for (let round = 1; round <= 6; round++) {
        const socket = yield* connected(port)
        socket.resume().write(get("/").repeat(2000) + get("/unanswered").repeat(2000))
        yield* eventually("all answers", () => answered === round * 2000)
        assert.isFalse(socket.destroyed)
        socket.destroy()
        // While requests wait, nothing is read of their connection: only a response finds out that it is closed.
        yield* eventually("its end", () => {
          unanswered?.end()
          return server.open === 0
        })
      }
    })
)

it.live("what the server refuses itself it tells of, as far as it could be read", () =>
  Effect.gen(function* () {
    const { port, server } = yield* listening
    const refused: Array<RequestFacts> = []
    server.on("refused", (each: RequestFacts) => refused.push(each))
    const [named, unread, head] = yield* Effect.forEach(
      ["GET /a?b=1 HTTP/1.1\r\nX-Request-Id: mine\r\n\r\n", "nonsense\r\n\r\n", "HEAD / HTTP/1.1\r\n\r\n"],
      (text) => exchange(`http://127.0.0.1:${port}`, text)
    )
    for (const text of [named, unread])
      assert.match(text ?? "", /^HTTP\/1.1 400 .*\r\ndate: \w{3}, .* GMT\r\n[^]*\r\nx-error: bad_request\r\n[^]*"}$/)
    assert.match(head ?? "", /^HTTP\/1.1 400 [^]*\r\ncontent-length: 24\r\n[^{]*\r\n\r\n$/)
    const address = "127.0.0.1"
    assert.lengthOf(refused, 3)
    assert.deepInclude(refused[0], { id: "mine", status: 400, path: "/a", address, bytes: 24 })
    assert.deepInclude(refused[1], { status: 400, path: "", address, bytes: 24 })
    assert.deepInclude(refused[2], { status: 400, path: "/", address, bytes: 0 })
  })
)
