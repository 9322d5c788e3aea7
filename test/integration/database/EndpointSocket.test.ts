/** The socket of a connection to a Postgres: what it reads, and how much memory that takes. */
import { Buffer } from "node:buffer"
import { once } from "node:events"
import { createServer } from "node:net"
import { assert, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { openSocket } from "../../../src/database/Endpoint.ts"
import { bytesOf } from "../../../src/database/Columns.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"

const sent = Buffer.from(Array.from({ length: 300_000 }, (_, index) => `${index},`).join(""))

/** A server that sends all of it to whoever connects, and closes. */
const listening = Effect.gen(function* () {
  const server = yield* Effect.acquireRelease(
    Effect.sync(() => createServer((socket) => socket.end(sent)).listen(0, "127.0.0.1")),
    (opened) => Effect.sync(() => opened.close())
  )
  yield* Effect.promise(() => once(server, "listening"))
  const address = server.address()
  return { port: address !== null && typeof address === "object" ? address.port : 0 }
})

it.live("reads everything in order, by way of one small buffer, and not while it is paused", () =>
  Effect.gen(function* () {
    const { port } = yield* listening
    const socket = openSocket({ host: "127.0.0.1", port, tls: undefined, asksSettings: true })
    const received: Array<Buffer> = []
    const buffers = new Set<ArrayBufferLike>()
    let isPaused = false
    let whilePaused = 0
    socket.on("data", (chunk: Buffer) => {
      buffers.add(chunk.buffer)
      received.push(Buffer.from(chunk))
      if (isPaused) whilePaused++
      if (received.length === 10) {
        isPaused = true
        socket.pause()
        setImmediate(() => {
          isPaused = false
          socket.resume()
        })
      }
    })
    yield* Effect.promise(() => once(socket, "close"))
    assert.isTrue(Buffer.concat(received).equals(sent))
    assert.strictEqual(whilePaused, 0)
    assert.deepStrictEqual(
      [...buffers].map(({ byteLength }) => byteLength),
      [30 * 1024]
    )
  })
)

layer(TestDatabase.layer, { excludeTestServices: true })("records that were read", (test) => {
  test.effect("stay as they are while their connection reads others", () =>
    Effect.gen(function* () {
      const sql = yield* clientOf((yield* TestDatabase).url)
      // Each answer is many reads, and ends in the middle of one.
      const read = (letter: string) =>
        sql.unsafe<{ record: Uint8Array }>(
          `select ${bytesOf("t.record")} from (select repeat('${letter}', 999) as record from generate_series(1, 200)) t`
        )
      const first = yield* read("a")
      yield* read("b")
      yield* read("c")
      assert.lengthOf(first, 200)
      for (const { record } of first) assert.strictEqual(Buffer.from(record).toString(), "a".repeat(999))
    })
  )
})
