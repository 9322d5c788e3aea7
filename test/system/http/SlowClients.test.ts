/**
 * Clients that send no HTTP, or do not send it in time, or never read: each comes to an end, with an answer where one can be given.
 *
 * @module-tag long
 */
import { assert, it as test, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import * as Client from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import * as Process from "../../support/Process.ts"
import * as Raw from "../../support/Raw.ts"
import { options } from "../../support/Service.ts"
import { startUsed } from "../../support/usedFolder.ts"

const environment = {
  HEADERS_TIMEOUT: "500 millis",
  BODY_TIMEOUT: "1 second",
  IDLE_TIMEOUT: "1 second"
}

class Program extends Context.Service<Program, Process.Process & { readonly url: string }>()(
  "practice-data/test/system/http/SlowClients/Program"
) {
  static readonly layer = Layer.effect(
    Program,
    Effect.gen(function* () {
      const program = yield* startUsed(environment)
      return { ...program, url: yield* program.address }
    })
  )
}

const search = (body: string, headers = "") =>
  [
    "POST /api/v3/charges/search HTTP/1.1",
    "Host: a",
    `Authorization: Bearer ${Client.keys.oakridge}`,
    "Content-Type: application/json",
    `${headers}Content-Length: ${body.length}`,
    "",
    body
  ].join("\r\n")

const get = (path: string, headers = "") => `GET ${path} HTTP/1.1\r\nHost: a\r\n${headers}\r\n`

const delivery = "POST /api/v1/invoice-deletions HTTP/1.1\r\nHost: a\r\nX-Organization-Id: a\r\nIdempotency-Key: k\r\n"

const started = { type: "Content-Type: application/json\r\n", length: "Content-Length: 100\r\n\r\n{" }

const refused = [
  { sent: "what is no HTTP", text: "nonsense\r\n\r\n", status: "400 Bad Request" },
  { sent: "no Host", text: "GET /api/v1/health HTTP/1.1\r\n\r\n", status: "400 Bad Request" },
  {
    sent: "two lengths of a body",
    text: `${delivery}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    status: "400 Bad Request"
  },
  {
    sent: "a broken chunk",
    text: `${delivery}${started.type}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
    status: "400 Bad Request"
  },
  {
    sent: "headers over 16 KiB",
    text: get("/", `X: ${"a".repeat(17_000)}\r\n`),
    status: "431 Request Header Fields Too Large"
  },
  { sent: "an unknown expectation", text: get("/", "Expect: tea\r\n"), status: "417 Expectation Failed" },
  { sent: "half of a request line", text: "GET / HT", status: "408 Request Timeout" },
  { sent: "half of its headers", text: "GET / HTTP/1.1\r\nHost: a\r\nX", status: "408 Request Timeout" },
  {
    sent: "half of a search",
    text: search("", "").replace("Content-Length: 0\r\n\r\n", started.length),
    status: "408 Request Timeout"
  },
  { sent: "half of a delivery", text: `${delivery}${started.type}${started.length}`, status: "408 Request Timeout" }
]

const statusesOf = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status)

layer(Program.layer, { ...options, concurrent: true })("A client that sends", (it) => {
  it.effect.each(refused)("$sent is answered $status with a detail, and its connection is closed", ({ text, status }) =>
    Effect.gen(function* () {
      const answer = yield* Raw.exchange((yield* Program).url, text)
      const [head = "", body] = answer.split("\r\n\r\n")
      assert.strictEqual(head.split("\r\n", 1)[0], `HTTP/1.1 ${status}`)
      assert.match(head, /\r\ncontent-type: application\/json/i)
      assert.match(head, /\r\nconnection: close/i)
      assert.match(head, /\r\nx-request-id: [!-~]+/i)
      assert.strictEqual(body, `{"detail":"${status.slice(4)}"}`)
    })
  )

  it.effect.each([
    { sent: "nothing", text: "", statuses: [] },
    { sent: "nothing more", text: get("/api/v1/health/ready"), statuses: ["200"] },
    { sent: "a wish for another host to connect to", text: "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", statuses: [] }
  ])("$sent has its connection closed", ({ text, statuses }) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(statusesOf(yield* Raw.exchange((yield* Program).url, text)), statuses)
    })
  )

  it.effect("empty lines for ever has its connection closed", () =>
    Effect.gen(function* () {
      const { closed, send } = yield* Raw.open((yield* Program).url)
      yield* send(get("/api/v1/health/ready"))
      const trickle = Effect.forever(Effect.andThen(send("\r\n"), Effect.sleep("100 millis")))
      assert.deepStrictEqual(statusesOf(yield* Effect.raceFirst(closed, trickle)), ["200"])
    })
  )

  it.effect("200 requests at once gets their answers in order, and those before what is no HTTP", () =>
    Effect.gen(function* () {
      const limits = Array.from({ length: 200 }, (_, n) => (n % 3 === 0 ? 0 : 1))
      const text = limits.map((limit) => search(`{"limit":${limit}}`)).join("")
      const answer = yield* Raw.exchange((yield* Program).url, `${text}nonsense\r\n\r\n`)
      assert.deepStrictEqual(statusesOf(answer), [...limits.map((limit) => (limit === 0 ? "400" : "200")), "400"])
    })
  )

  it.effect("and never reads has its connection closed, while one that reads slowly gets all", () =>
    Effect.gen(function* () {
      const { url, output } = yield* Program
      // A busy machine may have had something to say of the start.
      const before = output().length
      const page = search('{"limit":1000}').replace("charges", "consumption-logs")
      const [never, slowly] = [yield* Raw.open(url), yield* Raw.open(url)]
      never.socket.pause()
      yield* never.send(page.repeat(300))
      yield* slowly.send(`${page.repeat(150)}${get("/api/v1/health/ready", "Connection: close\r\n")}`)
      const slow = Effect.forever(
        Effect.gen(function* () {
          slowly.socket.pause()
          yield* Effect.sleep("20 millis")
          slowly.socket.resume()
          yield* Effect.sleep("20 millis")
        })
      )
      assert.lengthOf(statusesOf(yield* Effect.raceFirst(slowly.closed, slow)), 151)
      yield* Effect.sleep("3 seconds")
      never.socket.resume()
      assert.isBelow(statusesOf(yield* never.closed).length, 300)
      assert.notMatch(output().slice(before), /WARN|ERROR/)
    })
  )
})

test.live("MAX_CONNECTIONS is how many may be open: one more is refused, said once, until one is closed", () =>
  Effect.gen(function* () {
    const { address, output } = yield* Process.start({
      DATABASE_URL: "postgres://nobody@127.0.0.1:1/nothing",
      MAX_CONNECTIONS: "3"
    })
    const url = yield* address
    const isAnswered = (text: string) => statusesOf(text).includes("404")
    const held = yield* Effect.forEach([1, 2, 3], () => Raw.open(url))
    for (let times = 0; times < 3; times++) assert.strictEqual(yield* Raw.exchange(url, get("/unknown")), "")
    held[0]?.socket.destroy()
    yield* eventually(
      "a free connection",
      Effect.map(Raw.exchange(url, get("/unknown", "Connection: close\r\n")), isAnswered)
    )
    yield* eventually(
      "a line",
      Effect.sync(() => output().includes("MAX_CONNECTIONS=3"))
    )
    assert.lengthOf(output().match(/MAX_CONNECTIONS=3/g) ?? [], 1)
  })
)
