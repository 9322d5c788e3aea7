/** Short reads share connections: bounded in number, and without an answer where one is slow. */
import { assert, it } from "@effect/vitest"
import { Array, Deferred, Effect, Exit, Fiber, References } from "effect"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import { TestClock } from "effect/testing"
import { vi } from "vitest"
import * as Pipeline from "../../../src/lane/Pipeline.ts"
import { CurrentNotes, type Notes } from "../../../src/observability/RequestFacts.ts"
import { fakeTimers } from "../../support/fakeTimers.ts"

const dropped = new SqlError({ reason: new ConnectionError({ cause: new Error("of a test"), operation: "query" }) })

const one = { command: "SELECT", rowCount: 1, oid: null, rows: [{}], fields: [] }

/** The rows of a read that has no answer. */
const none: Effect.Effect<ReadonlyArray<object>> = Effect.succeed([])

/** Lets time pass for fibers, and for the deadline of a short read, which is a timer of Node. */
const pass = Effect.fnUntraced(function* (millis: number) {
  // Ends the timer of TestClock's warning.
  yield* TestClock.adjust(0)
  vi.advanceTimersByTime(millis)
  yield* TestClock.adjust(millis)
})

const untraced = Effect.provideService(References.TracerEnabled, false)

/** A short read over one shared connection, which is open, and the number of statements that it was sent. */
const reader = Effect.fnUntraced(function* (answer: Effect.Effect<typeof one, SqlError>) {
  const seen = { sent: 0 }
  const counted = Effect.suspend(() => {
    seen.sent += 1
    return answer
  })
  const short = yield* Pipeline.make({
    answered: () => {},
    openPipelined: () => Effect.succeed({ query: () => counted })
  })
  yield* TestClock.adjust(0)
  return { read: untraced(short("select 1", [], 1, none)), seen, short }
})

const noAnswer = Exit.succeed(Exit.succeed([]))

/** Starts beside the test. */
const begun = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkScoped(Effect.exit(effect), { startImmediately: true })

it.effect.each([
  ["answered", Effect.succeed(one)],
  ["failed", Effect.fail(dropped)],
  ["answered late", Effect.delay(Effect.succeed(one), "150 millis")]
] as const)("a place of a shared connection comes back from a read that is %s, or whose caller leaves", ([, answer]) =>
  Effect.gen(function* () {
    yield* fakeTimers
    const { read, seen } = yield* reader(answer)
    for (let n = 0; n < 40; n++) {
      yield* Fiber.interrupt(yield* begun(read))
      const staying = yield* begun(read)
      yield* pass(2000)
      assert.isDefined(staying.pollUnsafe())
    }
    assert.strictEqual(seen.sent, 80)
  })
)

it.effect("after a read that is slow on a shared connection, none has an answer there for a second", () =>
  Effect.gen(function* () {
    yield* fakeTimers
    const { read, seen } = yield* reader(Effect.delay(Effect.succeed(one), "150 millis"))
    const slow = yield* begun(read)
    yield* pass(100)
    assert.deepStrictEqual(slow.pollUnsafe(), noAnswer)
    assert.isEmpty(yield* read)
    assert.strictEqual(seen.sent, 1)
    yield* pass(1000)
    yield* begun(read)
    assert.strictEqual(seen.sent, 2)
  })
)

it.effect("a request notes the time of a read on a shared connection", () =>
  Effect.gen(function* () {
    const notes: Notes = { waited: 0, database: 0 }
    const { read } = yield* reader(Effect.delay(Effect.succeed(one), "40 millis"))
    yield* begun(Effect.provideService(read, CurrentNotes, notes))
    yield* TestClock.adjust("40 millis")
    assert.deepStrictEqual(notes, { waited: 0, database: 40 })
  })
)

it.effect("a shared connection has 16 unanswered statements at most", () =>
  Effect.gen(function* () {
    const { read, seen } = yield* reader(Effect.never)
    const reads = yield* Effect.forEach(Array.range(1, 20), () => begun(read))
    assert.strictEqual(seen.sent, 16)
    for (const refused of reads.slice(16)) assert.deepStrictEqual(refused.pollUnsafe(), noAnswer)
  })
)

it.effect("a shared connection takes statements of 16,000 rows before all of them are answered", () =>
  Effect.gen(function* () {
    const answer = yield* Deferred.make<typeof one>()
    const { seen, short } = yield* reader(Deferred.await(answer))
    const pages = yield* Effect.forEach([15_000, 1000, 1], (limit) =>
      begun(untraced(short("select 1", [], limit, none)))
    )
    assert.strictEqual(seen.sent, 2)
    assert.deepStrictEqual(pages[2]?.pollUnsafe(), noAnswer)
    yield* Deferred.succeed(answer, one)
    yield* begun(untraced(short("select 1", [], 1, none)))
    assert.strictEqual(seen.sent, 3)
  })
)
