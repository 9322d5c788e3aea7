/**
 * Clients that send no HTTP, do not send it in time, never read, hang up, or wait: each comes to an end, with an answer
 * where one can be given, and no other client waits for it.
 *
 * @module-tag long
 */
import { assert, it as test, layer } from "@effect/vitest"
import { Array, Context, Effect, Layer } from "effect"
import * as Client from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import * as Program from "../../support/Program.ts"
import * as Raw from "../../support/Raw.ts"
import { options } from "../../support/Service.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const timeouts = { HEADERS_TIMEOUT: "2s", BODY_TIMEOUT: "2s", IDLE_TIMEOUT: "3s" }

class Impatient extends Context.Service<Impatient, Program.Program>()(
  "practice-data/test/system/http/Clients/Impatient"
) {
  static readonly layer = Layer.effect(
    Impatient,
    Effect.flatMap(TestDatabase, ({ url }) => Program.start({ DATABASE_URL: url, ...timeouts }))
  ).pipe(Layer.provideMerge(TestDatabase.layerDemo))
}

const delivery = "POST /api/v1/invoice-deletions HTTP/1.1\r\nHost: a\r\nX-Organization-Id: a\r\nIdempotency-Key: k\r\n"
const halfOfIt = "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"

const refused = [
  ["headers over 16 KiB", Raw.get("/", `X: ${"a".repeat(17_000)}\r\n`), "431 Request Header Fields Too Large"],
  ["half of its headers", "GET / HTTP/1.1\r\nHost: a\r\nX", "408 Request Timeout"],
  ["half of a search", Raw.unfinished, "408 Request Timeout"],
  ["half of a delivery", delivery + halfOfIt, "408 Request Timeout"]
] as const

/** Sends a piece again and again, for as long as it is taken. Returns the number of bytes. */
const sendOn = ({ socket }: Raw.Connection, piece: string) => {
  let sent = 0
  const send = () => {
    while (socket.writable) {
      sent += piece.length
      if (!socket.write(piece)) return
    }
  }
  socket.on("drain", send)
  send()
  return () => sent
}

layer(Impatient.layer, { ...options, concurrent: true })("A client that sends", (it) => {
  it.effect.each(refused)("%s is told so with a detail, and its connection is closed", ([, text, status]) =>
    Effect.gen(function* () {
      const answer = yield* Raw.exchange((yield* Impatient).url, text)
      const [head = "", body] = answer.split("\r\n\r\n")
      assert.strictEqual(head.split("\r\n", 1)[0], `HTTP/1.1 ${status}`)
      for (const header of ["content-type: application/json", "connection: close", "x-request-id: "])
        assert.include(head, `\r\n${header}`)
      assert.strictEqual(body, `{"detail":"${status.slice(4)}"}`)
    })
  )

  it.effect("nothing, or nothing more has its connection closed", () =>
    Effect.gen(function* () {
      const { url } = yield* Impatient
      assert.strictEqual(yield* Raw.exchange(url, ""), "")
      assert.deepStrictEqual(Raw.statusesOf(yield* Raw.exchange(url, Raw.get("/unknown"))), [404])
    })
  )

  it.effect("and never reads has its connection closed, while one that reads slowly gets all", () =>
    Effect.gen(function* () {
      const { url } = yield* Impatient
      const page = Raw.post("/consumption-logs/search", '{"limit":1000}')
      const [never, slowly] = [yield* Raw.open(url), yield* Raw.open(url)]
      never.socket.pause()
      yield* never.send(page.repeat(300))
      yield* slowly.send(`${page.repeat(100)}${Raw.get("/unknown", "Connection: close\r\n")}`)
      const slow = Effect.gen(function* () {
        slowly.socket.pause()
        yield* Effect.sleep("30 millis")
        slowly.socket.resume()
        yield* Effect.sleep("20 millis")
      })
      assert.lengthOf(Raw.statusesOf(yield* Effect.raceFirst(slowly.closed, Effect.forever(slow))), 101)
      yield* Effect.sleep("9 seconds")
      never.socket.resume()
      assert.isBelow(Raw.statusesOf(yield* never.closed).length, 300)
    })
  )

  it.effect("a request and ends its side gets the response", () =>
    Effect.gen(function* () {
      const { url } = yield* Impatient
      const ended = Effect.fnUntraced(function* (text: string) {
        const { closed, socket } = yield* Raw.open(url)
        socket.end(text)
        return yield* closed
      })
      const taken = `${delivery}Content-Type: application/json\r\nContent-Length: 36\r\n\r\n{"invoices":[{"invoice_id":"none"}]}`
      assert.deepStrictEqual(Raw.statusesOf(yield* ended(taken)), [202])
      const changes = yield* ended(Raw.post("/changes", '{"resources":["pets"]}'))
      assert.deepStrictEqual(Raw.statusesOf(changes), [200])
    })
  )

  it.effect("a body without an end is not read without an end", () =>
    Effect.gen(function* () {
      const { url } = yield* Impatient
      const chunked = "Transfer-Encoding: chunked\r\n"
      for (const [head, status] of [
        [Raw.post("/charges/search", "", chunked), 413],
        [Raw.post("/charges/search", "", chunked).replace("pda_demo_oakridge", "unknown"), 401],
        [`${delivery}Content-Type: application/json\r\n${chunked}\r\n`, 413]
      ] as const) {
        const connection = yield* Raw.open(url)
        yield* connection.send(head)
        const sent = sendOn(connection, `10000\r\n${" ".repeat(65_536)}\r\n`)
        assert.deepStrictEqual(Raw.statusesOf(yield* connection.closed), [status])
        assert.isBelow(sent(), 64 * 1024 * 1024)
      }
    })
  )
})

/** Sends a large search and hangs up after some milliseconds. */
const hangUp = (url: string, after: number) =>
  Effect.gen(function* () {
    const { send } = yield* Raw.open(url)
    yield* send(Raw.post("/consumption-logs/search", '{"limit":1000}'))
    yield* Effect.sleep(after)
  }).pipe(Effect.scoped)

// It has one session, which a statement that nobody waits for would hold.
test.live("Callers that hang up keep no other waiting on the embedded database", () =>
  Effect.gen(function* () {
    const program = yield* Program.startUsed({})
    const { ask } = Client.patient(program.client)
    const search = Effect.map(ask("/charges/search", { limit: 1 }), ({ status }) => assert.strictEqual(status, 200))
    yield* search
    const before = program.output().length
    for (let round = 0; round < 3; round++) {
      const hangUps = Array.makeBy(100, (n) => hangUp(program.url, n % 20))
      yield* Effect.all(hangUps, { concurrency: "unbounded", discard: true })
      yield* Effect.all(Array.replicate(search, 8), { concurrency: 8 })
    }
    assert.notInclude(program.output().slice(before), "ERROR")
  })
)

test.live("MAX_CONNECTIONS bounds those that are open: one that is idle makes room for a new one", () =>
  Effect.gen(function* () {
    const most = 20
    const { url: database } = yield* TestDatabase
    const { output, url } = yield* Program.start({ DATABASE_URL: database, MAX_CONNECTIONS: String(most) })
    const open = yield* Effect.forEach(Array.range(1, most), () => Raw.open(url), { concurrency: 20 })
    assert.deepStrictEqual(
      Raw.statusesOf(yield* Raw.exchange(url, Raw.get("/unknown", "Connection: close\r\n"))),
      [404]
    )
    yield* eventually("a line", () => output().includes(`MAX_CONNECTIONS=${most}`))
    assert.lengthOf(
      open.filter(({ socket }) => socket.destroyed),
      1
    )
  }).pipe(Effect.provide(Layer.fresh(TestDatabase.layerDemo)))
)
