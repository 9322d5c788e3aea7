/**
 * Readers of changes that wait, as many as there are connections.
 *
 * @module-tag long
 */
import { assert, it } from "@effect/vitest"
import { Array, Effect, Schema } from "effect"
import * as Client from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import * as Raw from "../../support/Raw.ts"
import { startUsed } from "../../support/usedFolder.ts"

const connections = 400

const decodePage = Schema.decodeEffect(Schema.fromJsonString(Schema.Struct({ cursor: Schema.String })))

const waiting = (cursor: string) => {
  const body = JSON.stringify({ cursor, wait: 20 })
  return [
    "POST /api/v3/pets/changes HTTP/1.1",
    "Host: a",
    `Authorization: Bearer ${Client.keys.oakridge}`,
    "Content-Type: application/json",
    `Content-Length: ${body.length}`,
    "",
    body
  ].join("\r\n")
}

it.live("readers of one key that wait on all connections leave others served", () =>
  Effect.gen(function* () {
    const { address } = yield* startUsed({ MAX_CONNECTIONS: String(connections) })
    const url = yield* address
    const client = yield* Client.make(url)
    const { cursor } = yield* decodePage((yield* client.ask("/pets/changes", {})).text)
    const readers = yield* Effect.forEach(Array.range(1, connections - 1), () => Raw.open(url), { concurrency: 20 })
    yield* Effect.forEach(readers, ({ send }) => send(waiting(cursor)), { discard: true })
    const answered = () => readers.filter(({ received }) => received() !== "").length
    yield* eventually(
      "all but those that wait have an answer",
      Effect.sync(() => answered() >= connections - 1 - connections / 8)
    )
    const answers = yield* Effect.forEach(Array.range(1, 30), () =>
      Effect.flatMap(Client.make(url), (other) => other.ask("/charges/search", { limit: 1 }))
    )
    assert.deepStrictEqual([...new Set(answers.map(({ status }) => status))], [200])
    assert.isAbove(readers.filter(({ received }) => received() === "").length, 0)
  }).pipe(Effect.scoped)
)
