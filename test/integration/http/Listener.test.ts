/** The listener: what is no request, its limits, and its stop. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, flow, Layer } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { Front, Listener, type Options } from "../../../src/http/Listener.ts"
import { around } from "../../../src/http/Middleware.ts"
import { type Refusal, type RequestFacts, RequestObservers } from "../../../src/observability/RequestFacts.ts"
import { eventually } from "../../support/eventually.ts"
import * as Listening from "../../support/Listening.ts"
import { samples, withRegistry } from "../../support/metrics.ts"
import * as Raw from "../../support/Raw.ts"

const until = flow(eventually, TestClock.withLive)

/** Answers with the path; `/waits` never. */
const route = Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ url }) =>
  url === "/waits" ? Effect.interruptible(Effect.never) : Effect.succeed(HttpServerResponse.text(`answer to ${url}`))
)

const paths = new Map(["a", "before", "closing", "draining", "other", "waits"].map((path) => [`/${path}`, ["GET"]]))
const app = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
  around(paths, { prefix: "/", lookUp: undefined })(
    Effect.provideService(route, HttpServerRequest.HttpServerRequest, request)
  )
)

/** A listener, and the facts of its requests. */
const listening = Effect.fnUntraced(function* (options: Partial<Options> = {}) {
  const observed: Array<RequestFacts> = []
  const observers = Layer.succeed(RequestObservers, [(facts: RequestFacts) => void observed.push(facts)])
  const listener = Listener.layer(Effect.succeed(app), { ...Listening.options, isMeasured: true, ...options })
  const context = yield* Layer.build(Layer.provide(Layer.fresh(listener), observers))
  return { ...(yield* Effect.provide(Listener, context)), observed }
})

const briefly = { headersTimeout: Duration.millis(100), bodyTimeout: Duration.millis(100) }

const answer = (status: string) =>
  new RegExp(
    `^HTTP/1.1 ${status}\r\n[^]*content-type: application/json\r\n[^]*connection: close\r\n[^]*` +
      `x-error: \\w+\r\n[^]*x-request-id: (\\S+)\r\n\r\n\\{"detail":"${status.slice(4)}"\\}$`
  )

const waits = (headers: string) => Raw.get("/waits", `${headers}\r\n`)
const chunked = waits("Transfer-Encoding: chunked")
const long = "a".repeat(17_000)
const handled = { path: "/waits", endpoint: "/waits" }
const none = { path: "", endpoint: "other", address: "127.0.0.1" }

const noRequests: ReadonlyArray<readonly [string, string, status: string, refusal: Refusal, facts: object]> = [
  ["no HTTP", "nonsense\r\n\r\n", "400 Bad Request", "protocol", { ...none, bytes: 24 }],
  ["no HTTP behind a request", `${Raw.get("/waits")}nonsense\r\n\r\n`, "400 Bad Request", "protocol", none],
  ["half of its headers", "GET / HTTP/1.1\r\nHo", "408 Request Timeout", "timeout", none],
  ["half of its body", `${waits("Content-Length: 9")}{`, "408 Request Timeout", "timeout", { ...handled, bytes: 28 }],
  ["a malformed chunk", `${chunked}x\r\n`, "400 Bad Request", "protocol", handled],
  [
    "half, with an id",
    `${waits("Content-Length: 9\r\nX-Request-Id: a")}{`,
    "408 Request Timeout",
    "timeout",
    { id: "a" }
  ],
  ["headers over 16 KiB", waits(`X: ${long}`), "431 Request Header Fields Too Large", "too_large", none],
  ["chunk extensions over 16 KiB", `${chunked}1;${long}\r\n`, "413 Payload Too Large", "too_large", handled]
]

const read = (name: string) => Effect.map(samples, (all) => all[`practice_data_http_${name}`])

describe("A client", () => {
  it.live.each(noRequests)("that sends %s is answered, disconnected and observed", ([, text, status, refusal, facts]) =>
    Effect.gen(function* () {
      const { observed, url } = yield* listening(briefly)
      const [, id] = answer(status).exec(yield* Raw.exchange(url, text)) ?? []
      assert.isDefined(id)
      yield* eventually("its facts", () => observed.some((each) => each.id === id))
      const [refused, ...more] = observed.filter((each) => each.status !== 499)
      assert.deepInclude(refused, { id, status: Number(status.slice(0, 3)), refusal, ...facts })
      assert.isEmpty(more)
    })
  )

  it.live("beyond MAX_CONNECTIONS is disconnected, and counted", () =>
    Effect.gen(function* () {
      const { url } = yield* listening({ maxConnections: 2 })
      const [first, second] = [yield* Raw.open(url), yield* Raw.open(url)]
      yield* first.send(Raw.get("/waits"))
      yield* eventually("both connections", read("connections"), (count) => count === 2)
      yield* eventually("the request", read("requests_in_flight"), (count) => count === 1)
      assert.strictEqual(yield* (yield* Raw.open(url)).closed, "")
      assert.strictEqual(yield* read("connections_refused_total"), 1)
      second.socket.destroy()
      yield* eventually("room for another", read("connections"), (count) => count === 1)
      assert.include(yield* Raw.exchange(url, Raw.get("/a", "Connection: close\r\n")), "answer to /a")
    }).pipe(withRegistry)
  )

  it.live("that asks to switch to another protocol is served as HTTP", () =>
    Effect.gen(function* () {
      const { url } = yield* listening()
      const { received, send } = yield* Raw.open(url)
      yield* send(Raw.get("/a", "Connection: Upgrade\r\nUpgrade: websocket\r\n"))
      yield* eventually("its response", () => received().includes("answer to /a"))
    })
  )
})

it.live("a front gets each request first, and may pass it on", () =>
  Effect.gen(function* () {
    const front = Layer.succeed(Front, (request, response, pass) => {
      if (request.url === "/mine") response.end("mine")
      else pass()
    })
    const listener = Layer.fresh(Listener.layer(Effect.succeed(app), Listening.options))
    const { url } = yield* Effect.provide(Listener, yield* Layer.build(Layer.provide(listener, front)))
    const text = yield* Raw.exchange(url, Raw.get("/mine") + Raw.get("/other", "Connection: close\r\n"))
    assert.match(text, /mine[^]*answer to \/other/)
  })
)

const isOpen = ({ socket }: Raw.Connection) => !socket.closed

describe("A stop", () => {
  it.effect("serves on, then closes each connection after its response, and idle ones a second later", () =>
    Effect.gen(function* () {
      const { drain, url } = yield* listening()
      const [kept, idle] = [yield* Raw.open(url), yield* Raw.open(url)]
      const ask = (path: string) =>
        Effect.andThen(
          kept.send(Raw.get(path)),
          until("a response", () => kept.received().includes(`answer to ${path}`))
        )
      yield* ask("/before")
      const stopping = yield* Effect.forkChild(drain(Duration.seconds(5)), { startImmediately: true })
      yield* TestClock.adjust("4900 millis")
      yield* ask("/draining")
      assert.notInclude(kept.received(), "Connection: close")
      yield* TestClock.adjust("100 millis")
      assert.strictEqual(yield* TestClock.withLive((yield* Raw.open(url)).closed), "")
      yield* ask("/closing")
      assert.match(yield* TestClock.withLive(kept.closed), /Connection: close\r\n[^]*answer to \/closing$/)
      assert.isTrue(isOpen(idle))
      yield* TestClock.adjust("1 second")
      yield* until("the end of the other", () => !isOpen(idle))
      yield* Fiber.join(stopping)
    })
  )

  it.effect("waits ten seconds for responses in progress", () =>
    Effect.gen(function* () {
      const { drain, url } = yield* listening()
      const waiting = yield* Raw.open(url)
      yield* waiting.send(Raw.get("/waits"))
      yield* until("a request", read("requests_in_flight"), (count) => count === 1)
      const stopping = yield* Effect.forkChild(drain(Duration.seconds(5)), { startImmediately: true })
      yield* TestClock.adjust("15900 millis")
      assert.isTrue(isOpen(waiting))
      yield* TestClock.adjust("100 millis")
      assert.strictEqual(yield* TestClock.withLive(waiting.closed), "")
      yield* Fiber.join(stopping)
    }).pipe(withRegistry)
  )
})
