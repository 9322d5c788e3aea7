/** The socket of a connection to a Postgres: what it reads. */
import { Buffer } from "node:buffer"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { bytesOf } from "../../../src/database/Columns.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"

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
