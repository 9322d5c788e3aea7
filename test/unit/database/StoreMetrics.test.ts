/** What is measured of a store. */
import { assert, it } from "@effect/vitest"
import { Array, Duration, Effect, Fiber, Ref } from "effect"
import { ConnectionError, LockTimeoutError, SqlError, StatementTimeoutError } from "effect/sql/SqlError"
import { TestClock } from "effect/testing"
import * as Store from "../../../src/database/Store.ts"
import * as PoolMetrics from "../../../src/observability/PoolMetrics.ts"
import { samples, withRegistry } from "../../support/metrics.ts"

const cause = new Error("of a test")
const failure = {
  unreachable: new SqlError({ reason: new ConnectionError({ cause, operation: "connect" }) }),
  dropped: new SqlError({ reason: new ConnectionError({ cause, operation: "query" }) }),
  timeout: new SqlError({ reason: new StatementTimeoutError({ cause, operation: "query" }) }),
  busy: new SqlError({ reason: new LockTimeoutError({ cause, operation: "query" }) })
}

const makeStore = Effect.fnUntraced(function* (connections: number) {
  const isUp = yield* Ref.make(true)
  const probe = Effect.flatMap(Ref.get(isUp), (up) => (up ? Effect.void : Effect.fail(failure.unreachable)))
  const store = yield* Effect.provideService(
    Store.make({ name: "store", pool: "records", connections, isCancellable: true, probe }),
    Store.Meters,
    PoolMetrics.make
  )
  const ask = <A, E>(statement: Effect.Effect<A, E>, key = "a") =>
    Effect.exit(store.run({ key, within: Duration.seconds(3), unavailable: ({ _tag }) => _tag }, statement))
  return { ask, isUp }
})

const begun = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkScoped(effect, { startImmediately: true })

const label = '{pool="records"}'

/** How many statements had each outcome, those without any left out. */
const outcomes = Effect.map(samples, (found) =>
  Object.fromEntries(
    Object.entries(found).flatMap(([key, count]) => {
      const outcome = /^practice_data_statements_total\{pool="records",outcome="(\w+)"\}$/.exec(key)?.[1]
      return outcome === undefined || count === 0 ? [] : [[outcome, count] as const]
    })
  )
)

it.effect("statements are counted by what came of them", () =>
  Effect.gen(function* () {
    const { ask } = yield* makeStore(4)
    yield* ask(Effect.succeed("found"))
    yield* ask(Effect.fail("an error of its own"))
    yield* ask(Effect.die("a bug"))
    yield* ask(Effect.fail(failure.timeout))
    yield* ask(Effect.fail(failure.busy))
    yield* ask(Effect.fail(failure.dropped))
    yield* Fiber.interrupt(yield* begun(ask(Effect.never)))
    const late = yield* begun(ask(Effect.never))
    yield* TestClock.adjust("3 seconds")
    yield* Fiber.join(late)
    assert.deepStrictEqual(yield* outcomes, {
      success: 1,
      failed: 2,
      timeout: 2,
      busy: 1,
      unreachable: 1,
      interrupted: 1
    })
    const found = yield* samples
    assert.strictEqual(found[`practice_data_statement_duration_seconds_count${label}`], 8)
    assert.closeTo(found[`practice_data_statement_duration_seconds_sum${label}`] ?? 0, 3, 0.01)
  }).pipe(withRegistry)
)

it.effect("connections and waits are measured, also of who gets no connection", () =>
  Effect.gen(function* () {
    const { ask } = yield* makeStore(1)
    const first = yield* begun(ask(Effect.delay(Effect.succeed("found"), "400 millis")))
    const second = yield* begun(ask(Effect.never, "b"))
    const third = yield* begun(ask(Effect.succeed("found"), "c"))
    const before = yield* samples
    assert.strictEqual(before[`practice_data_pool_connections${label}`], 1)
    assert.strictEqual(before[`practice_data_pool_connections_busy${label}`], 1)
    assert.strictEqual(before[`practice_data_pool_waiting${label}`], 2)
    yield* TestClock.adjust("400 millis")
    yield* Fiber.join(first)
    yield* TestClock.adjust("600 millis")
    yield* Fiber.join(third)
    assert.deepStrictEqual(yield* outcomes, { success: 1, refused: 1 })
    yield* Fiber.interrupt(second)
    const after = yield* samples
    assert.strictEqual(after[`practice_data_pool_wait_seconds_count${label}`], 3)
    assert.closeTo(after[`practice_data_pool_wait_seconds_sum${label}`] ?? 0, 1.4, 0.01)
  }).pipe(withRegistry)
)

it.effect("an outage is counted once, and shows for as long as it lasts", () =>
  Effect.gen(function* () {
    const { ask, isUp } = yield* makeStore(4)
    const state = Effect.map(samples, (found) => [
      found['practice_data_dependency_up{dependency="records"}'],
      found['practice_data_dependency_outages_total{dependency="records"}']
    ])
    assert.deepStrictEqual(yield* state, [1, 0])
    yield* Ref.set(isUp, false)
    yield* Effect.forEach(Array.range(1, 20), () => ask(Effect.fail(failure.unreachable)))
    assert.deepStrictEqual(yield* state, [0, 1])
    assert.deepStrictEqual(yield* outcomes, { unreachable: 20 })
    yield* TestClock.adjust("10 seconds")
    yield* Ref.set(isUp, true)
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(yield* state, [1, 1])
  }).pipe(withRegistry)
)
