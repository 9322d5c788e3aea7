/** Reads that a replica ends. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { ConnectionError, SerializationError, SqlError } from "effect/sql/SqlError"
import { retryOvertaken } from "../../../src/database/SqlFailure.ts"

const cause = new Error("of a test")
const unreachable = new SqlError({ reason: new ConnectionError({ cause, operation: "connect" }) })
const dropped = new SqlError({ reason: new ConnectionError({ cause, operation: "query" }) })
const overtaken = new SqlError({ reason: new SerializationError({ cause, operation: "query" }) })

it.effect.each([
  ["cancels", overtaken, 2],
  ["closes the connection of", dropped, 2],
  ["does not accept", unreachable, 1]
] as const)("a read that a replica %s is tried once more if it has begun", ([, error, tries]) =>
  Effect.gen(function* () {
    let tried = 0
    const read = (ended: number) => Effect.suspend(() => (++tried > ended ? Effect.succeed(tried) : Effect.fail(error)))
    assert.strictEqual(yield* Effect.flip(retryOvertaken(read(2))), error)
    assert.strictEqual(tried, tries)
    tried = 0
    assert.strictEqual(yield* Effect.orElseSucceed(retryOvertaken(read(1)), () => 1), tries)
  })
)
