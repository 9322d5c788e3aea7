/** Request bodies: their media type, size, encoding and syntax, their memory, and the worker thread of large ones. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Clock, DateTime, Duration, Effect, Exit, Fiber, Layer, Schedule, Schema, Scope } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { DataApi } from "../../../src/api/DataApi.ts"
import { ServiceBusy } from "../../../src/api/Errors.ts"
import { faults } from "../../../src/api/Faults.ts"
import { taskIdOf } from "../../../src/deletions/Delivery.ts"
import { tasks } from "../../../src/deletions/Handlers.ts"
import * as JsonBodyServer from "../../../src/http/JsonBodyServer.ts"
import { readBody, wantedBy } from "../../../src/http/JsonBodyServer.ts"
import * as LargeBodies from "../../../src/http/LargeBodies.ts"
import { busy } from "../../../src/intake/Handlers.ts"
import * as AuthorizationServer from "../../../src/keys/AuthorizationServer.ts"
import * as PspHandlers from "../../../src/psp/Handlers.ts"
import * as RecordHandlers from "../../../src/records/Handlers.ts"
import { expectAnswer, InProcess, invalid, layerDemo, send, type Sent } from "../../support/inProcess.ts"

const bytes = (...values: ReadonlyArray<number>) => new Uint8Array(values)
const ascii = (text: string) => [...new TextEncoder().encode(text)]
const kibibyte = 1024
const mebibyte = 1024 * kibibyte
const padded = (size: number) => `{}${" ".repeat(size - 2)}`

/** A body in pieces of 16 KiB, of which nobody is told the length. */
const streamed = (size: number) => {
  let left = size
  return new ReadableStream<Uint8Array>({
    pull: (controller) => {
      const piece = Math.min(left, 16 * kibibyte)
      left -= piece
      if (piece > 0) controller.enqueue(new Uint8Array(piece).fill(0x20))
      else controller.close()
    }
  })
}

const accepted: ReadonlyArray<Sent> = [
  { raw: " \r\n\t{ } \n" },
  { raw: bytes(0xef, 0xbb, 0xbf, ...ascii("{}")) },
  { raw: padded(mebibyte) },
  ...["application/json; charset=utf-8", "application/json ; a=b; c=d", "APPLICATION/JSON"].map((type) => ({
    headers: { "content-type": type }
  }))
]

const notObjects = [
  ["object", ["[]", `"{}"`, "9".repeat(400), "true", "[".repeat(500_000) + "]".repeat(500_000)]],
  ["missing", ["", " \r\n ", "null", " null\n"]]
] as const

/** Bodies that are not JSON, and where they stop being it, in characters. */
const malformed = [
  ["{", 1],
  ["NaN", 0],
  [`{"limit":}`, 9],
  [`{"limit":1,}`, 11],
  [`{"limit":1} x`, 12],
  [`{"status":"é",}`, 14],
  [`[1 2]`, 3],
  [`{"a":`.repeat(100_000), 500_000],
  [bytes(...ascii(`{"status":"`), 0xff, ...ascii(`"}`)), 0],
  ['{"status":"a","status":null}', 14],
  [String.raw`{"organization":"org_x","\u006frganization":"x"}`, 24],
  [`{"x":[{"a":1,"a":1}],"status":"${"s".repeat(100_000)}"}`, 13]
] as const

const otherTypes = [undefined, "", "application/jsonp", "text/plain; application/json"]

layer(InProcess.layer())("a body", (test) => {
  test.effect("is accepted with white space, a byte order mark, up to 1 MiB, and with parameters of its type", () =>
    Effect.gen(function* () {
      for (const sent of accepted) assert.strictEqual((yield* send(sent)).status, 200, sent.headers?.["content-type"])
    })
  )

  test.effect.each(notObjects)("that is no object is 422: %s", ([kind, values]) =>
    Effect.forEach(values, (raw) => expectAnswer({ raw }, 422, { detail: [{ loc: ["body"], ...faults[kind] }] }))
  )

  test.effect("that is not JSON or UTF-8, or has a member twice, is 422 with the position", () =>
    Effect.forEach(malformed, ([raw, at]) => expectAnswer({ raw }, 422, invalid([at, faults.json])))
  )

  test.effect("whose Content-Type is absent or not application/json is 422 content_type", () =>
    Effect.forEach(otherTypes, (type) =>
      expectAnswer({ headers: { "content-type": type } }, 422, {
        detail: [{ loc: ["header", "content-type"], ...faults.contentType }]
      })
    )
  )

  test.effect.each<readonly [string, Sent]>([
    ["announced, before it is read", { raw: "{}", headers: { "content-length": String(mebibyte + 1) } }],
    ["sent in pieces", { raw: streamed(2 * mebibyte) }]
  ])("over 1 MiB is 413: %s", ([, sent]) =>
    expectAnswer(sent, 413, { detail: "The request body is larger than 1048576 bytes" })
  )
})

const sender = (group: LargeBodies.Sender["group"], owner: string): LargeBodies.Sender => ({ group, owner })

/** Reads bodies of these sizes, each in a scope that stays open. The length of each; undefined of one that is refused. */
const readAll = (
  budgets: LargeBodies.Budgets,
  from: LargeBodies.Sender,
  sizes: ReadonlyArray<number>,
  headers?: Readonly<Record<string, string>>
) =>
  Effect.forEach(sizes, (size) =>
    Effect.gen(function* () {
      const init = { method: "POST", headers: headers ?? { "content-length": String(size) }, body: streamed(size) }
      const request = HttpServerRequest.fromWeb(new Request("http://localhost/", { ...init, duplex: "half" }))
      const scope = yield* Scope.make()
      const reading = readBody(request, { maxBytes: mebibyte, budget: budgets[from.group], owner: from.owner })
      const read = yield* Effect.exit(Scope.provide(reading, scope))
      return { scope, length: Exit.isSuccess(read) ? read.value.length : undefined }
    })
  )

const lengthsOf = (read: ReadonlyArray<{ readonly length: number | undefined }>) => read.map(({ length }) => length)

const chunked = { "transfer-encoding": "chunked" }

const budgetsOf = (kibibytes: number): LargeBodies.Budgets => {
  const budget = () => new LargeBodies.Budget(kibibytes * kibibyte)
  return { key: budget(), signed: budget(), stranger: budget() }
}

describe("the memory of large bodies", () => {
  it.effect("is shared beyond the first 8 KiB of each, and given back when their requests are over, read or not", () =>
    Effect.gen(function* () {
      const budgets = budgetsOf(400)
      const sizes = [108, 108, 9, 8, 2000].map((size) => size * kibibyte)
      for (let round = 0; round < 3; round++) {
        const read = yield* readAll(budgets, sender("key", "a"), sizes)
        assert.deepStrictEqual(lengthsOf(read), [sizes[0], sizes[1], undefined, sizes[3], undefined])
        for (const { scope } of read) yield* Scope.close(scope, Exit.void)
      }
      assert.strictEqual(budgets.key.left, 400 * kibibyte)
    })
  )

  it.effect("counts what was received, whatever is announced", () =>
    Effect.gen(function* () {
      const budgets = budgetsOf(200)
      const read = yield* readAll(budgets, sender("key", "a"), [108 * kibibyte, 9 * kibibyte], chunked)
      assert.deepStrictEqual(lengthsOf(read), [108 * kibibyte, undefined])
      const announced = { "content-length": String(mebibyte) }
      const small = yield* readAll(budgetsOf(0), sender("key", "a"), [8 * kibibyte], announced)
      assert.deepStrictEqual(lengthsOf(small), [8 * kibibyte])
    })
  )

  it.effect("is apart for keys, organizations that sign and strangers, and one of them leaves half to the others", () =>
    Effect.gen(function* () {
      const budgets = budgetsOf(400)
      const size = 108 * kibibyte
      const lengths = (group: LargeBodies.Sender["group"], owner: string) =>
        Effect.map(readAll(budgets, sender(group, owner), [size, size, size]), lengthsOf)
      assert.deepStrictEqual(yield* lengths("stranger", "a"), [size, size, undefined])
      assert.deepStrictEqual(yield* lengths("stranger", "b"), [size, size, undefined])
      assert.deepStrictEqual(yield* lengths("stranger", "c"), [undefined, undefined, undefined])
      assert.deepStrictEqual(yield* lengths("signed", "a"), [size, size, undefined])
      assert.deepStrictEqual(yield* lengths("key", "a"), [size, size, undefined])
    })
  )

  it("is 24 MiB of 256, and at most 96", () => {
    const leftOf = (memory: number) => Object.values(LargeBodies.budgetsOf(memory * mebibyte)).map(({ left }) => left)
    assert.deepStrictEqual(leftOf(256), Array(3).fill(8 * mebibyte))
    assert.deepStrictEqual(leftOf(512), Array(3).fill(16 * mebibyte))
    assert.deepStrictEqual(leftOf(65_536), Array(3).fill(32 * mebibyte))
  })
})

const bodies = JsonBodyServer.layer({ maxBytes: 1_000_000, budgets: budgetsOf(200) })

const handlers = Layer.mergeAll(RecordHandlers.layer, PspHandlers.layer, tasks).pipe(
  Layer.provideMerge([AuthorizationServer.layer, bodies]),
  Layer.provide(layerDemo)
)

const server = InProcess.layerOf(Layer.provide(HttpApiBuilder.layer(DataApi), handlers))

const large = (size: number) => {
  const raw = `{"status":"${"s".repeat(size)}"}`
  return { path: "/charges/search", raw, headers: { "content-length": String(raw.length) } }
}

layer(server)("a large body, while others take up all memory for them,", (test) => {
  test.effect("is 503 with Retry-After on the data API, and small ones are answered", () =>
    Effect.gen(function* () {
      const { headers } = yield* expectAnswer(large(300_000), 503, { detail: new ServiceBusy().detail })
      assert.strictEqual(headers["retry-after"], "1")
      yield* expectAnswer(large(10), 200, { body: [] })
      yield* expectAnswer(large(90_000), 200, { body: [] })
    })
  )

  test.effect("is 503 with Retry-After and the receipt of a delivery that was not stored on the intake", () =>
    Effect.gen(function* () {
      const headers = { "idempotency-key": "k", "x-organization-id": "o" }
      const request = HttpServerRequest.fromWeb(new Request("http://localhost/", { method: "POST", headers }))
      const answer = Effect.provideService(busy(Duration.minutes(1)), HttpServerRequest.HttpServerRequest, request)
      const response = HttpServerResponse.toWeb(yield* answer)
      const scheduled_for = DateTime.formatIso(DateTime.makeUnsafe((yield* Clock.currentTimeMillis) + 60_000))
      assert.deepStrictEqual([response.status, response.headers.get("retry-after")], [503, "1"])
      const receipt = { status: "error", task_id: taskIdOf("o", "k"), scheduled_for, received_at: null }
      assert.deepInclude(yield* Effect.promise(() => response.json()), receipt)
    })
  )
})

const wanted = wantedBy(Schema.Struct({ text: Schema.String }))

const prune = (text: string, from = sender("key", "a")) =>
  LargeBodies.prune(from, new TextEncoder().encode(text), wanted)

const hostile = `{"text":"a","x":[${"[],".repeat(500_000)}[]]}`

describe("large bodies", () => {
  it.live("are pruned while the event loop turns", () =>
    Effect.gen(function* () {
      yield* prune("{}")
      let turns = 0
      const turn = Effect.sync(() => turns++)
      const ticking = yield* Effect.forkChild(Effect.repeat(turn, Schedule.spaced("1 millis")))
      const many = Array.from({ length: 8 }, () => prune(hostile))
      for (const result of yield* Effect.all(many, { concurrency: "unbounded" }))
        assert.deepStrictEqual(result, { text: '{"text":"a","x":null}' })
      yield* Fiber.interrupt(ticking)
      assert.isAbove(turns, 20)
    })
  )

  it.live("of strangers make way for those of keys and of organizations that sign, and owners take turns", () =>
    Effect.gen(function* () {
      const ended: Array<string> = []
      const run = (text: string, group: LargeBodies.Sender["group"], owner: string) =>
        Effect.forkChild(Effect.map(prune(text, sender(group, owner)), () => ended.push(`${group} ${owner}`)))
      const strangers = yield* Effect.forEach(["a", "a", "a", "b"], (owner) => run(hostile, "stranger", owner))
      yield* Effect.sleep("1 millis")
      const others = yield* Effect.all([run(hostile, "signed", "a"), run("{}", "key", "a")])
      yield* Effect.forEach([...strangers, ...others], Fiber.join)
      assert.deepStrictEqual(ended, ["key a", "signed a", "stranger a", "stranger a", "stranger b", "stranger a"])
    })
  )
})
