/** If the end of a request is in doubt, nothing of what follows it on its connection is taken for a request. */
import type { RequestListener } from "node:http"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "../../support/eventually.ts"
import * as Listening from "../../support/Listening.ts"
import { exchange, get, open, statusesOf } from "../../support/Raw.ts"

const body = "GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: smuggled\r\n\r\n"
const length = `Content-Length: ${body.length}\r\n`
const chunked = "Transfer-Encoding: chunked\r\n"
const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n"
const inChunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`

interface Sent {
  readonly sent: string
  readonly version?: string
  readonly method?: string
  readonly headers?: string
  readonly body?: string
  /** The statuses of the responses that come until the connection is closed. */
  readonly statuses: ReadonlyArray<number>
}

/** Each is followed by another request on its connection. */
const table: ReadonlyArray<Sent> = [
  { sent: "an upgrade", headers: upgrade, statuses: [200] },
  { sent: "an upgrade with a body", headers: upgrade + length, body, statuses: [200] },
  { sent: "an upgrade with chunks", headers: upgrade + chunked, body: inChunks, statuses: [411] },
  { sent: "an upgrade with invalid chunks", headers: upgrade + chunked, body: "zz\r\n", statuses: [411] },
  { sent: "a protocol, and no upgrade to it", headers: "Upgrade: h2c\r\n", statuses: [200] },
  { sent: "a connection to another host", method: "CONNECT", statuses: [405] },
  { sent: "an unknown expectation", headers: `Expect: tea\r\n${length}`, body, statuses: [417] },
  { sent: "no Host", headers: length, body, statuses: [400] },
  { sent: "two Hosts", headers: "Host: localhost\r\n", statuses: [400] },
  { sent: "chunks in HTTP/1.0", version: "1.0", headers: chunked, body: inChunks, statuses: [400] },
  { sent: "chunks and a length", headers: chunked + length, body: inChunks, statuses: [400] },
  { sent: "two lengths", headers: length + length, body, statuses: [400] },
  { sent: "a folded header", headers: `X: a\r\n ${length}`, statuses: [400] },
  { sent: "a header ended by a line feed", headers: `X: a\n${length}`, statuses: [400] },
  { sent: "chunks of a coding", headers: "Transfer-Encoding: gzip, chunked\r\n", body: inChunks, statuses: [400] },
  { sent: "a coding after chunks", headers: "Transfer-Encoding: chunked, gzip\r\n", body: inChunks, statuses: [400] },
  { sent: "more headers than Node reads", headers: "a:\r\n".repeat(1100) + length, body, statuses: [431] },
  { sent: "its last request", headers: "Connection: close\r\n", statuses: [200] },
  { sent: "a known expectation", headers: `Expect: 100-continue\r\n${length}`, body, statuses: [200] },
  { sent: "a length", headers: length, body, statuses: [200, 200] },
  { sent: "chunks", headers: chunked, body: inChunks, statuses: [200, 200] },
  { sent: "an upgrade after the chunks", headers: chunked, body: `0\r\n${upgrade}\r\n`, statuses: [200, 200] }
]

const textOf = ({ body: content = "", headers = "", method = "GET", sent, version = "1.1" }: Sent) =>
  `${method} / HTTP/${version}\r\n${sent === "no Host" ? "" : "Host: localhost\r\n"}${headers}\r\n${content}`

it.live.each(table)("A connection with $sent is answered $statuses, and then closed", (sent) =>
  Effect.gen(function* () {
    const { port, server } = yield* Listening.ordered()
    const url = `http://127.0.0.1:${port}`
    const ids: Array<unknown> = []
    const respond: RequestListener = ({ headers }, response) => {
      ids.push(headers["x-request-id"])
      response.end()
    }
    server.on("request", respond).on("checkContinue", respond)

    const isServed = sent.statuses.filter((status) => status === 200).length === 2
    const first = textOf(sent)
    const next = get("/", `Connection: close\r\n${isServed ? "" : "X-Request-Id: smuggled\r\n"}`)
    assert.deepStrictEqual(statusesOf(yield* exchange(url, first + next)), sent.statuses, "at once")

    const { closed, received, send, socket } = yield* open(url)
    yield* send(first + next.slice(0, 9))
    yield* eventually("a response", () => received() !== "" || socket.closed)
    yield* send(next.slice(9))
    assert.deepStrictEqual(statusesOf(yield* closed), sent.statuses, "in two pieces")

    const answer = yield* exchange(url, get("/") + first + next)
    assert.deepStrictEqual(statusesOf(answer), [200, ...sent.statuses], "after another request")
    assert.notInclude(ids, "smuggled")
  })
)
