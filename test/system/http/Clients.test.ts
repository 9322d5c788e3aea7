/**
 * Clients that send no HTTP, do not send it in time, never read, hang up, or wait: each comes to an end, with an answer
 * where one can be given, and no other client waits for it.
 *
 * @module-tag long
 */
import { assert, it as test, layer } from "@effect/vitest"
import { Array, Context, Effect, Layer } from "effect"
import * as Client from "../../support/Client.ts"
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
    const hangUps = Array.makeBy(100, (n) => hangUp(program.url, n % 20))
    yield* Effect.all(hangUps, { concurrency: "unbounded", discard: true })
    yield* Effect.all(Array.replicate(search, 8), { concurrency: 8 })
    assert.notInclude(program.output().slice(before), "ERROR")
  })
)
