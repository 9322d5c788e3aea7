/** Statements go to a database in their turn, in time, and not at all while it is known to be down. */
import { assert, it } from "@effect/vitest"
import { Array, Deferred, Duration, Effect, Exit, Fiber, Logger, Ref } from "effect"
import * as Sql from "effect/sql/SqlError"
import { TestClock } from "effect/testing"
import { vi } from "vitest"
import * as Store from "../../../src/database/Store.ts"
import { CurrentNotes, type Notes } from "../../../src/observability/RequestFacts.ts"
import { samples, withRegistry } from "../../support/metrics.ts"

// The time is virtual: a test that takes seconds hangs.
vi.setConfig({ testTimeout: 3000 })

const cause = new Error("of a test")
const failed = (reason: Sql.SqlError["reason"]) => new Sql.SqlError({ reason })
const unreachable = failed(new Sql.ConnectionError({ cause, operation: "connect" }))
const full = failed(new Sql.ConnectionError({ cause: { code: "53300" }, operation: "connect" }))
const dropped = failed(new Sql.ConnectionError({ cause, operation: "query" }))
const cancelled = failed(new Sql.StatementTimeoutError({ cause, operation: "query" }))
const locked = failed(new Sql.LockTimeoutError({ cause: { code: "55P03" }, operation: "query" }))
const denied = failed(new Sql.AuthorizationError({ cause: { code: "42501" }, operation: "query" }))

/** A store over a database that is up or down, what was seen of it, and its metrics. */
const makeStore = Effect.fnUntraced(function* ({ cancels = true, connections = 2 } = {}) {
  const isUp = yield* Ref.make(true)
  const failure = yield* Ref.make(unreachable)
  const seen = { statements: 0, probes: 0 }
  const lines: Array<string> = []
  const logger = Logger.layer([Logger.map(Logger.formatLogFmt, (line) => lines.push(line))])
  const asked = (name: keyof typeof seen) =>
    Effect.flatMap(Ref.get(isUp), (up) => {
      seen[name]++
      return up ? Effect.succeed("found") : Effect.flip(Ref.get(failure))
    })
  const store = yield* Store.make({
    name: "store",
    pool: "records",
    connections,
    isCancellable: cancels,
    probe: asked("probes")
  }).pipe(Effect.provide(logger))
  return {
    ask: <A, E>(statement: Effect.Effect<A, E>, key = "a", within = Duration.seconds(8)) =>
      store.run({ key, within, unavailable: ({ _tag }) => _tag }, statement).pipe(Effect.provide(logger)),
    failure,
    isUp,
    lines,
    seen,
    statement: asked("statements")
  }
})

/** Starts beside the test. */
const begun = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkScoped(Effect.exit(effect), { startImmediately: true })

/** The metrics of the pool, by their names without the prefix, and those of its outcomes. */
const metrics = Effect.map(samples, (found) =>
  Object.fromEntries(
    Object.entries(found).flatMap(([key, value]) => {
      const [, name = "", outcome] =
        /^practice_data_(\w+)\{(?:pool|dependency)="records"(?:,outcome="(\w+)")?\}$/.exec(key) ?? []
      return name === "" || (outcome !== undefined && value === 0) ? [] : [[outcome ?? name, value]]
    })
  )
)

it.effect("an outage: statements fail at once, nothing is sent, and a probe ends it within a second", () =>
  Effect.gen(function* () {
    const { ask, isUp, lines, seen, statement } = yield* makeStore()
    assert.strictEqual(yield* ask(statement), "found")
    yield* Ref.set(isUp, false)
    assert.strictEqual(yield* Effect.flip(ask(statement)), "Unreachable")
    seen.statements = 0
    const answers = yield* Effect.forEach(Array.range(1, 500), (n) => Effect.flip(ask(statement, `key ${n}`)), {
      concurrency: "unbounded"
    })
    assert.deepStrictEqual(new Set(answers), new Set(["Unreachable"]))
    assert.strictEqual(seen.statements, 0)
    yield* TestClock.adjust("10 seconds")
    assert.deepInclude(yield* metrics, { dependency_up: 0, failed: 501 })
    assert.isTrue(seen.probes >= 10 && seen.probes <= 100)
    yield* Ref.set(isUp, true)
    yield* TestClock.adjust("1 second")
    assert.strictEqual(yield* ask(statement), "found")
    // It may be gone again at once.
    yield* TestClock.adjust("1 second")
    const said = lines.map((line) => /The store (cannot be reached|is back)/.exec(line)?.[1])
    assert.deepStrictEqual(said, ["cannot be reached", "is back"])
    assert.deepInclude(yield* metrics, { dependency_up: 1 })
  }).pipe(withRegistry)
)

it.effect("statements that wait for a connection fail at once when the store turns out to be down", () =>
  Effect.gen(function* () {
    const { ask } = yield* makeStore({ connections: 1 })
    const failing = yield* Deferred.make<never, Sql.SqlError>()
    const first = yield* begun(ask(Deferred.await(failing)))
    const others = yield* Effect.forEach(Array.range(1, 100), (n) => begun(ask(Effect.succeed("found"), `key ${n}`)))
    yield* Deferred.fail(failing, unreachable)
    for (const fiber of [first, ...others])
      assert.deepStrictEqual(fiber.pollUnsafe(), Exit.succeed(Exit.fail("Unreachable")))
  })
)

it.effect("a connection that cannot be made while other statements succeed is no outage", () =>
  Effect.gen(function* () {
    const { ask, statement } = yield* makeStore({ connections: 4 })
    const failing = yield* Deferred.make<never, Sql.SqlError>()
    const first = yield* begun(ask(Deferred.await(failing)))
    assert.strictEqual(yield* ask(statement, "b"), "found")
    yield* Deferred.fail(failing, unreachable)
    assert.deepStrictEqual(yield* Fiber.join(first), Exit.fail("Unreachable"))
    assert.strictEqual(yield* ask(statement), "found")
  })
)

it.effect("failures are warned of once in a while, refusals apart, with the number of those left out", () =>
  Effect.gen(function* () {
    const { ask, lines } = yield* makeStore()
    const asking = yield* begun(ask(Effect.never, "health", Duration.millis(400)))
    yield* TestClock.adjust("400 millis")
    assert.deepStrictEqual(asking.pollUnsafe(), Exit.succeed(Exit.fail("Busy")))
    assert.deepStrictEqual(lines, [], "a caller with a timeout below a second proves nothing")
    for (let n = 0; n < 50; n++) yield* Effect.exit(ask(Effect.fail(n === 0 ? denied : cancelled)))
    const said = lines.map((line) => /The store (did not answer|refuses the service)/.exec(line)?.[1])
    assert.deepStrictEqual(said, ["refuses the service", "did not answer"])
    yield* TestClock.setTime(-600_000)
    yield* TestClock.adjust("10 seconds")
    yield* Effect.exit(ask(Effect.fail(cancelled)))
    assert.match(lines.at(-1) ?? "", /left_out=48/)
  })
)

it.effect("a store that hangs is probed after a second, and then statements fail at once", () =>
  Effect.gen(function* () {
    const { ask, isUp, statement } = yield* makeStore()
    yield* Ref.set(isUp, false)
    const hung = yield* Effect.forEach(Array.range(1, 10), (n) => begun(ask(Effect.never, `key ${n}`)))
    yield* TestClock.adjust("1 second")
    for (const fiber of hung) assert.isDefined(fiber.pollUnsafe())
    assert.strictEqual(yield* Effect.flip(ask(statement)), "Unreachable")
  })
)

it.effect("a store without a connection for a probe is up: no outage begins, and one ends", () =>
  Effect.gen(function* () {
    const { ask, failure, isUp, statement } = yield* makeStore()
    yield* Ref.set(isUp, false)
    yield* Ref.set(failure, full)
    const slow = yield* begun(ask(Effect.never))
    yield* TestClock.adjust("2 seconds")
    assert.isUndefined(slow.pollUnsafe())
    assert.strictEqual(yield* ask(Effect.succeed("found"), "b"), "found")
    yield* Ref.set(failure, unreachable)
    assert.strictEqual(yield* Effect.flip(ask(statement, "b")), "Unreachable")
    yield* Ref.set(failure, full)
    yield* TestClock.adjust("1 second")
    assert.strictEqual(yield* ask(Effect.succeed("found"), "b"), "found")
  })
)

it.effect("a busy store is probed a few times a second, and its statements run to their timeout", () =>
  Effect.gen(function* () {
    const { ask, seen } = yield* makeStore({ connections: 2 })
    const slow = yield* begun(ask(Effect.never, "a"))
    for (let n = 0; n < 100; n++) {
      const waiting = yield* begun(ask(Effect.succeed("found"), "a"))
      yield* TestClock.adjust("10 millis")
      if (n < 99) assert.isUndefined(waiting.pollUnsafe())
    }
    yield* TestClock.adjust("1 second")
    assert.isTrue(seen.probes > 0 && seen.probes <= 6, `${seen.probes} probes`)
    assert.isUndefined(slow.pollUnsafe())
    assert.strictEqual(yield* ask(Effect.succeed("found"), "b"), "found")
    yield* TestClock.adjust("6 seconds")
    assert.deepStrictEqual(slow.pollUnsafe(), Exit.succeed(Exit.fail("Busy")))
  })
)

it.effect.each([
  ["leaves", true, Fiber.interrupt],
  ["leaves", false, Fiber.interrupt],
  ["times out", true, () => TestClock.adjust("8 seconds")]
] as const)("a statement whose caller %s is cancelled: %s; its connection is taken until it ends", (given) =>
  Effect.gen(function* () {
    const [, cancels, leave] = given
    const { ask } = yield* makeStore({ connections: 1, cancels })
    const end = yield* Deferred.make<void>()
    let wasCancelled = false
    let neverRan = true
    const cancel = Effect.andThen(
      Effect.sync(() => (wasCancelled = true)),
      Deferred.await(end)
    )
    const first = yield* begun(ask(Effect.onInterrupt(Deferred.await(end), () => cancel)))
    yield* Fiber.interrupt(yield* begun(ask(Effect.sync(() => (neverRan = false)))))
    yield* leave(first)
    assert.strictEqual(wasCancelled, cancels)
    const next = yield* begun(ask(Effect.succeed("found"), "b"))
    assert.isUndefined(next.pollUnsafe())
    yield* Deferred.succeed(end, undefined)
    assert.deepStrictEqual(yield* Fiber.join(next), Exit.succeed("found"))
    assert.isTrue(neverRan)
    assert.deepInclude(yield* metrics, { success: 1 })
  }).pipe(withRegistry)
)

it.effect("failures are no outage, own errors stay as they are, and all are counted and timed", () =>
  Effect.gen(function* () {
    const { ask, seen, statement } = yield* makeStore({ connections: 4 })
    for (const [error, failure] of [
      [dropped, "Unreachable"],
      [cancelled, "Busy"],
      [locked, "Busy"],
      [denied, "Refused"],
      [{ own: true }, { own: true }]
    ] as const) {
      assert.deepStrictEqual<unknown>(yield* Effect.flip(ask(Effect.fail(error))), failure)
    }
    assert.strictEqual(yield* ask(statement), "found")
    assert.strictEqual(seen.probes, 0)
    yield* Effect.exit(ask(Effect.die("a bug")))
    yield* Fiber.interrupt(yield* begun(ask(Effect.never)))
    const late = yield* begun(ask(Effect.never, "a", Duration.seconds(3)))
    yield* TestClock.adjust("3 seconds")
    assert.isDefined(late.pollUnsafe())
    const found = yield* metrics
    assert.deepInclude(found, { success: 1, failed: 7, interrupted: 1 })
    assert.strictEqual(found["statement_duration_seconds_count"], 9)
    assert.closeTo(found["statement_duration_seconds_sum"] ?? 0, 3, 0.01)
  }).pipe(withRegistry)
)

it.effect("taken connections are a gauge that goes down again", () =>
  Effect.gen(function* () {
    const { ask } = yield* makeStore({ connections: 1 })
    yield* begun(ask(Effect.delay(Effect.succeed("found"), "400 millis")))
    const second = yield* begun(ask(Effect.never, "b"))
    const third = yield* begun(ask(Effect.succeed("found"), "c"))
    assert.deepInclude(yield* metrics, { pool_connections: 1, pool_connections_busy: 1 })
    yield* TestClock.adjust("1 second")
    assert.isDefined(third.pollUnsafe())
    assert.deepInclude(yield* metrics, { success: 1, failed: 1 })
    yield* Fiber.interrupt(second)
    const after = yield* metrics
    assert.deepInclude(after, { pool_connections_busy: 0, pool_wait_seconds_count: 3 })
    assert.closeTo(after["pool_wait_seconds_sum"] ?? 0, 1.4, 0.01)
  }).pipe(withRegistry)
)

it.effect("a request notes the times of its statements, how long they waited, and a refusal", () =>
  Effect.gen(function* () {
    const notes: Notes = { waited: 0, database: 0 }
    const { ask } = yield* makeStore({ connections: 1 })
    const statement = Effect.delay(Effect.succeed("found"), "300 millis")
    const asking = Effect.all([ask(statement), ask(statement, "b")], { concurrency: "unbounded" })
    const noting = Effect.provideService(CurrentNotes, notes)
    yield* begun(noting(asking))
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(notes, { waited: 300, database: 600 })
    yield* Effect.exit(noting(ask(Effect.fail(unreachable))))
    assert.strictEqual(notes.refusal, "outage")
  })
)

it.effect("keys that wait are served in turn, and one leaves two connections to others", () =>
  Effect.gen(function* () {
    const { ask } = yield* makeStore({ connections: 4 })
    const served: Array<string> = []
    const [first, second] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    const hold = (key: string, end: Effect.Effect<void>) => {
      const held = Effect.suspend(() => {
        served.push(key)
        return end
      })
      return begun(ask(held, key))
    }
    for (let n = 0; n < 3; n++) yield* hold("x", Effect.never)
    for (const end of [first, second]) yield* hold("y", Deferred.await(end))
    for (const key of ["a", "a", "b"]) yield* hold(key, Effect.never)
    assert.deepStrictEqual(served, ["x", "x", "y", "y"])
    yield* Deferred.succeed(first, undefined)
    yield* TestClock.adjust("1 millis")
    yield* Deferred.succeed(second, undefined)
    yield* TestClock.adjust("1 millis")
    assert.deepStrictEqual(served, ["x", "x", "y", "y", "a", "b"])
  })
)
