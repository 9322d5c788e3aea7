/** How statements go to a database: in their turn, in time, and not at all while it is known to be down. */
import { assert, it } from "@effect/vitest"
import { Array, Deferred, Duration, Effect, Exit, Fiber, Logger, Ref } from "effect"
import { AuthorizationError, ConnectionError, SqlError, StatementTimeoutError } from "effect/sql/SqlError"
import { TestClock } from "effect/testing"
import * as Store from "../../../src/database/Store.ts"

const connectFailure = new SqlError({
  reason: new ConnectionError({ cause: new Error("connect ECONNREFUSED"), operation: "connect" })
})

const dropped = new SqlError({
  reason: new ConnectionError({ cause: new Error("Connection closed"), operation: "query" })
})

const cancelled = new SqlError({
  reason: new StatementTimeoutError({ cause: new Error("canceling statement"), operation: "query" })
})

const denied = new SqlError({
  reason: new AuthorizationError({ cause: { code: "42501" }, operation: "query" })
})

/** A store over a database that is up or down, and what was seen of it. */
const makeStore = Effect.fnUntraced(function* (options: { readonly connections?: number; readonly cancels?: boolean }) {
  const isUp = yield* Ref.make(true)
  const seen = { statements: 0, probes: 0 }
  const lines: Array<string> = []
  const logger = Logger.layer([Logger.map(Logger.formatLogFmt, (line) => lines.push(line))])
  const asked = (name: keyof typeof seen) =>
    Effect.flatMap(Ref.get(isUp), (up) => {
      seen[name]++
      return up ? Effect.succeed("found") : Effect.fail(connectFailure)
    })
  const { run } = yield* Store.make({
    name: "store",
    connections: options.connections ?? 2,
    isCancellable: options.cancels ?? true,
    probe: asked("probes")
  }).pipe(Effect.provide(logger))
  const ask = <A, E>(statement: Effect.Effect<A, E>, key = "a", within = Duration.seconds(8)) =>
    run({ key, within, unavailable: ({ _tag }) => _tag }, statement).pipe(Effect.provide(logger))
  return { ask, isUp, lines, seen, statement: asked("statements") }
})

/** Begins, and goes on beside the test. */
const begun = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkScoped(Effect.exit(effect), { startImmediately: true })

/** A statement that runs until it is told to end, and says when it began and when it was cut short. */
const makeStatement = Effect.gen(function* () {
  const end = yield* Deferred.make<string>()
  const state = { began: false, cancelled: false }
  const statement = Effect.suspend(() => {
    state.began = true
    return Effect.onInterrupt(Deferred.await(end), () => Effect.sync(() => (state.cancelled = true)))
  })
  return { end: Deferred.succeed(end, "ended"), state, statement }
})

it.effect("nobody is sent to a store that is known to be down, and a probe finds it again within a second", () =>
  Effect.gen(function* () {
    const { ask, isUp, lines, seen, statement } = yield* makeStore({})
    assert.strictEqual(yield* ask(statement), "found")
    yield* Ref.set(isUp, false)
    assert.strictEqual(yield* Effect.flip(ask(statement)), "Unreachable")
    seen.statements = 0
    const answers = yield* Effect.forEach(Array.range(1, 5000), (n) => Effect.flip(ask(statement, `key ${n}`)), {
      concurrency: "unbounded"
    })
    assert.deepStrictEqual(new Set(answers), new Set(["Unreachable"]))
    assert.strictEqual(seen.statements, 0)
    yield* TestClock.adjust("10 seconds")
    assert.isTrue(seen.probes >= 10 && seen.probes <= 100)
    yield* Ref.set(isUp, true)
    yield* TestClock.adjust("1 second")
    assert.strictEqual(yield* ask(statement), "found")
    // It may be gone again at once.
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(
      lines.map((line) => /The store (cannot be reached|is back)/.exec(line)?.[1]),
      ["cannot be reached", "is back"]
    )
    assert.match(lines.at(-1) ?? "", /away_ms=10200 refused=5001/)
  })
)

it.effect("whoever waits for a connection of a store that turns out to be down is answered at once", () =>
  Effect.gen(function* () {
    const { ask } = yield* makeStore({ connections: 1 })
    const failing = yield* Deferred.make<never, SqlError>()
    const first = yield* begun(ask(Deferred.await(failing)))
    const others = yield* Effect.forEach(Array.range(1, 100), (n) => begun(ask(Effect.succeed("found"), `key ${n}`)))
    yield* Deferred.fail(failing, connectFailure)
    for (const fiber of [first, ...others])
      assert.deepStrictEqual(yield* Fiber.join(fiber), Exit.fail("Unreachable" as const))
  })
)

it.effect.each([
  ["a connection that is dropped", dropped, "Unreachable"],
  ["a statement that takes too long", cancelled, "Busy"],
  ["a statement that the database refuses", denied, "Refused"]
] as const)("%s is no outage", ([, error, failure]) =>
  Effect.gen(function* () {
    const { ask, seen, statement } = yield* makeStore({})
    assert.strictEqual(yield* Effect.flip(ask(Effect.fail(error))), failure)
    assert.strictEqual(yield* ask(statement), "found")
    assert.strictEqual(seen.probes, 0)
  })
)

it.effect("a connection that cannot be made while others work is no outage", () =>
  Effect.gen(function* () {
    const { ask, statement } = yield* makeStore({ connections: 4 })
    const failing = yield* Deferred.make<never, SqlError>()
    const first = yield* begun(ask(Deferred.await(failing)))
    assert.strictEqual(yield* ask(statement, "b"), "found")
    yield* Deferred.fail(failing, connectFailure)
    assert.deepStrictEqual(yield* Fiber.join(first), Exit.fail("Unreachable"))
    assert.strictEqual(yield* ask(statement), "found")
  })
)

it.effect("a failed statement is warned of, once for as many as fail in a while", () =>
  Effect.gen(function* () {
    const { ask, lines } = yield* makeStore({})
    yield* Effect.forEach(Array.range(1, 50), () => Effect.exit(ask(Effect.fail(cancelled))))
    assert.strictEqual(lines.length, 1)
    yield* TestClock.adjust("10 seconds")
    yield* Effect.exit(ask(Effect.fail(cancelled)))
    assert.match(lines.join(), /left_out=49/)
  })
)

it.effect("a statement that is refused is warned of as such, also while others are not answered", () =>
  Effect.gen(function* () {
    const { ask, lines } = yield* makeStore({})
    for (const error of [cancelled, denied]) yield* Effect.exit(ask(Effect.fail(error)))
    assert.deepStrictEqual(
      lines.map((line) => /The store (did not answer|refuses the service)/.exec(line)?.[1]),
      ["did not answer", "refuses the service"]
    )
  })
)

it.effect("a caller that waits for less than a second proves nothing of the database: the log has no warning", () =>
  Effect.gen(function* () {
    const { ask, lines } = yield* makeStore({})
    const asking = yield* begun(ask(Effect.never, "health", Duration.millis(400)))
    yield* TestClock.adjust("400 millis")
    assert.deepStrictEqual(yield* Fiber.join(asking), Exit.fail("Busy"))
    assert.deepStrictEqual(lines, [])
  })
)

it.effect("a store that hangs is found out by a probe within two seconds, and then answers at once", () =>
  Effect.gen(function* () {
    const { ask, isUp, statement } = yield* makeStore({ connections: 2 })
    yield* Ref.set(isUp, false)
    const hung = yield* Effect.forEach(Array.range(1, 10), (n) => begun(ask(Effect.never, `key ${n}`)))
    yield* TestClock.adjust("1 second")
    for (const fiber of hung) assert.isDefined(fiber.pollUnsafe())
    assert.strictEqual(yield* Effect.flip(ask(statement)), "Unreachable")
  })
)

it.effect("a store that is only busy is not taken for one that is down", () =>
  Effect.gen(function* () {
    const { ask, seen } = yield* makeStore({ connections: 2 })
    const slow = yield* begun(ask(Effect.never, "a"))
    const waiting = yield* begun(ask(Effect.succeed("found"), "a"))
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(waiting.pollUnsafe(), Exit.succeed(Exit.fail("Busy")))
    assert.isAbove(seen.probes, 0)
    assert.isUndefined(slow.pollUnsafe())
    assert.strictEqual(yield* ask(Effect.succeed("found"), "b"), "found")
    yield* TestClock.adjust("7 seconds")
    assert.deepStrictEqual(slow.pollUnsafe(), Exit.succeed(Exit.fail("Busy")))
  })
)

it.effect("a connection is taken until its statement is through, and not only while somebody waits for it", () =>
  Effect.gen(function* () {
    const { ask } = yield* makeStore({ connections: 1 })
    const cancelling = yield* Deferred.make<void>()
    const stuck = Effect.onInterrupt(Effect.never, () => Deferred.await(cancelling))
    const first = yield* begun(ask(stuck))
    yield* Fiber.interrupt(first)
    const next = yield* begun(ask(Effect.succeed("found"), "b"))
    assert.isUndefined(next.pollUnsafe())
    yield* Deferred.succeed(cancelling, undefined)
    assert.deepStrictEqual(yield* Fiber.join(next), Exit.succeed("found"))
  })
)

it.effect("a statement that cannot be cancelled runs to its end when its caller leaves or its time is over", () =>
  Effect.gen(function* () {
    const { ask } = yield* makeStore({ connections: 1, cancels: false })
    for (const leave of [Fiber.interrupt, () => TestClock.adjust("8 seconds")]) {
      const { end, state, statement } = yield* makeStatement
      const first = yield* begun(ask(statement))
      const never = yield* makeStatement
      const waiting = yield* begun(ask(never.statement))
      yield* Fiber.interrupt(waiting)
      yield* leave(first)
      const next = yield* begun(ask(Effect.succeed("found"), "b"))
      assert.deepStrictEqual([state, next.pollUnsafe()], [{ began: true, cancelled: false }, undefined])
      yield* end
      assert.deepStrictEqual(yield* Fiber.join(next), Exit.succeed("found"))
      assert.isFalse(never.state.began)
    }
  })
)

it.effect("a statement that can be cancelled is, when its caller leaves or its time is over", () =>
  Effect.gen(function* () {
    const { ask } = yield* makeStore({})
    for (const leave of [Fiber.interrupt, () => TestClock.adjust("8 seconds")]) {
      const { state, statement } = yield* makeStatement
      const first = yield* begun(ask(statement))
      yield* leave(first)
      assert.isTrue(state.cancelled)
    }
  })
)

it.effect("an error of the caller's own goes through as it is", () =>
  Effect.gen(function* () {
    const { ask } = yield* makeStore({})
    const own = Effect.fail({ _tag: "Own" } as const)
    assert.deepStrictEqual(yield* Effect.flip(ask(own)), { _tag: "Own" })
  })
)
