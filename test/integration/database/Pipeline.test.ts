/** Short reads share connections: what they answer, and what happens to those behind a statement that takes long. */
import { assert, layer } from "@effect/vitest"
import { Array, Duration, Effect, Fiber } from "effect"
import { bytesOf } from "../../../src/database/Columns.ts"
import type { Database } from "../../../src/database/Database.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"

const open = Effect.flatMap(TestDatabase, ({ url }) => clientOf(url, { maxConnections: 3, sharedConnections: 1 }))

const request = { key: "a", within: Duration.seconds(8), unavailable: ({ reason }: { reason: string }) => reason }

const short = <A>(sql: Database, text: string, value: unknown, alone?: Effect.Effect<ReadonlyArray<A>>) => {
  const statement = sql.unsafe<A & object>(text, [value])
  return sql.runShort(request, [text, [value]], () => alone ?? statement)
}

const backend = "select pg_backend_pid() as pid, $1::int as value"

interface Answer {
  readonly pid: number
  readonly value: number
}

const answers = (sql: Database, count: number) =>
  Effect.forEach(Array.range(1, count), (value) => short<Answer>(sql, backend, value), { concurrency: "unbounded" })

layer(TestDatabase.layer, { excludeTestServices: true })("short reads", (it) => {
  it.effect("that come at once have each its own answer, most of them from one connection", () =>
    Effect.gen(function* () {
      const sql = yield* open
      yield* answers(sql, 1)
      const found = (yield* answers(sql, 100)).flat()
      assert.deepStrictEqual(
        found.map(({ value }) => value),
        Array.range(1, 100)
      )
      const [first] = yield* answers(sql, 1)
      const shared = found.filter(({ pid }) => pid === first?.[0]?.pid)
      assert.isAtLeast(shared.length, 8)
    }).pipe(Effect.scoped)
  )

  it.effect("behind one that takes long are run on connections of their own soon", () =>
    Effect.gen(function* () {
      const sql = yield* open
      yield* answers(sql, 1)
      const alone = yield* Effect.cached(Effect.succeed<ReadonlyArray<object>>([{ alone: true }]))
      const slow = yield* Effect.forkChild(short(sql, "select pg_sleep($1::float8)", 1, alone), {
        startImmediately: true
      })
      const begun = performance.now()
      const found = (yield* answers(sql, 4)).flat()
      assert.deepStrictEqual(
        found.map(({ value }) => value),
        [1, 2, 3, 4]
      )
      assert.deepStrictEqual(yield* Fiber.join(slow), [{ alone: true }])
      assert.isBelow(performance.now() - begun, 900)
    }).pipe(Effect.scoped)
  )

  it.effect("that fail where they share a connection are run like any other", () =>
    Effect.gen(function* () {
      const { sql: admin } = yield* TestDatabase
      const sql = yield* open
      const [first] = yield* answers(sql, 1)
      const waiting = yield* Effect.forkChild(short(sql, "select pg_sleep(0.05), $1::int as value", 1), {
        startImmediately: true
      })
      yield* admin`select pg_terminate_backend(${first?.[0]?.pid ?? 0}::int)`
      assert.strictEqual((yield* Fiber.join(waiting)).length, 1)
      const wrong = yield* Effect.flip(short(sql, "select 1 / $1::int", 0))
      assert.strictEqual(wrong, "UnknownError 22012")
      assert.strictEqual((yield* answers(sql, 3)).length, 3)
    }).pipe(Effect.scoped)
  )

  it.effect("whose caller leaves keep their place, so that those behind them have their own answers", () =>
    Effect.gen(function* () {
      const sql = yield* open
      yield* answers(sql, 1)
      const leaving = yield* Effect.forkChild(short(sql, "select pg_sleep(0.05), $1::int as value", 9), {
        startImmediately: true
      })
      const staying = yield* Effect.forkChild(answers(sql, 3), { startImmediately: true })
      yield* Fiber.interrupt(leaving)
      const found = (yield* Fiber.join(staying)).flat()
      assert.deepStrictEqual(
        found.map(({ value }) => value),
        [1, 2, 3]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("leave records that were read as they are, whatever their connection reads next", () =>
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
