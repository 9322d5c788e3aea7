/** Connections that short reads share. */
import { assert, layer } from "@effect/vitest"
import { Array, Effect, Fiber, References } from "effect"
import { TestClock } from "effect/testing"
import { type Short, make } from "../../../src/lane/Pipeline.ts"
import { fakeTimers } from "../../support/fakeTimers.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"

const backend = "select pg_backend_pid() as pid, $1::int as value"

interface Answer {
  readonly pid: number
  readonly value: number
}

/** The rows of a read that has no answer. */
const none: Effect.Effect<ReadonlyArray<Answer>> = Effect.succeed([])

const answers = (short: Short, count: number) =>
  Effect.forEach(Array.range(1, count), (value) => short(backend, [value], 1, none), { concurrency: "unbounded" })

/** The process of the connection, once it is open. */
const opened = Effect.fnUntraced(function* (short: Short) {
  const read = Effect.map(short(backend, [1], 1, none), (rows) => rows[0]?.pid)
  return yield* Effect.repeat(Effect.tap(read, Effect.yieldNow), { until: (pid) => pid !== undefined })
})

const open = Effect.gen(function* () {
  const { url } = yield* TestDatabase
  const short = yield* make(yield* clientOf(url, { maxConnections: 3, isPipelined: true }))
  const untraced: Short = (...read) => Effect.provideService(short(...read), References.TracerEnabled, false)
  return untraced
})

layer(TestDatabase.layer, { excludeTestServices: true })("short reads", (it) => {
  it.effect("sent together get their own answers from one connection, also behind one that left", () =>
    Effect.gen(function* () {
      yield* fakeTimers
      const short = yield* open
      const first = yield* opened(short)
      const leaving = yield* Effect.forkChild(short("select pg_sleep(0.05)", [], 1, none), { startImmediately: true })
      const staying = yield* Effect.forkChild(answers(short, 40), { startImmediately: true })
      yield* Fiber.interrupt(leaving)
      const expected = Array.makeBy(15, (index) => ({ pid: first, value: index + 1 }))
      assert.deepStrictEqual((yield* Fiber.join(staying)).flat(), expected)
    })
  )

  it.effect("that fail have no answer, and the next have one from another connection", () =>
    Effect.gen(function* () {
      yield* fakeTimers
      const { sql: admin } = yield* TestDatabase
      const short = yield* open
      const first = yield* opened(short)
      assert.isEmpty(yield* short("select 1 / $1::int", [0], 1, none))
      const waiting = yield* Effect.forkChild(short("select pg_sleep(5)", [], 1, none), { startImmediately: true })
      yield* admin`select pg_terminate_backend(${first ?? 0}::int)`
      assert.isEmpty(yield* Fiber.join(waiting))
      yield* TestClock.adjust("1 second")
      assert.notStrictEqual(yield* opened(short), first)
    }).pipe(Effect.scoped, Effect.provide(TestClock.layer()))
  )
})
