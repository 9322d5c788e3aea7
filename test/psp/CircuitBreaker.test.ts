/** Circuits by key, as a state machine: times are numbers. */
import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import * as CircuitBreaker from "../../src/psp/CircuitBreaker.ts"

const make = (maximumCircuits = 100) =>
  CircuitBreaker.make({
    failures: 2,
    openDuration: Duration.seconds(5),
    probeInterval: Duration.seconds(1),
    maximumCircuits
  })

const failNow = (breaker: CircuitBreaker.CircuitBreaker, key: string, time: number) =>
  breaker.fail(key, breaker.admit(key, time), time)

describe("CircuitBreaker", () => {
  it("keeps the circuits of as many keys as it may, those that failed last", () => {
    const breaker = make(2)
    for (const key of ["a", "b", "c"]) {
      assert.isFalse(failNow(breaker, key, 0))
      assert.isTrue(failNow(breaker, key, 0))
    }
    assert.deepStrictEqual(
      ["a", "b", "c"].map((key) => breaker.isOpen(key)),
      [false, true, true]
    )
  })

  it("says how long it is until the next call, also while a probe runs", () => {
    const breaker = make()
    assert.strictEqual(breaker.untilNext("a", 0), 0)
    failNow(breaker, "a", 0)
    failNow(breaker, "a", 0)
    assert.strictEqual(breaker.untilNext("a", 1500), 3500)
    assert.strictEqual(breaker.untilNext("a", 5000), 0)
    breaker.admit("a", 5000)
    assert.strictEqual(breaker.untilNext("a", 5400), 600)
    assert.strictEqual(breaker.untilNext("a", 6000), 0)
    assert.strictEqual(breaker.untilNext("b", 0), 0)
  })

  it("goes by no outcome of a call from before it opened or closed", () => {
    const breaker = make()
    const before = [1, 2, 3, 4].map(() => breaker.admit("a", 0))
    const outcomes = before.map((permit) => breaker.fail("a", permit, 4000))
    assert.deepStrictEqual(outcomes, [false, true, false, false])
    assert.isFalse(breaker.succeed("a", before[0] ?? breaker.admit("a", 0)))
    assert.strictEqual(breaker.untilNext("a", 4000), 5000)
    const [hung, next] = [breaker.admit("a", 9000), breaker.admit("a", 10_000)]
    assert.isTrue(breaker.succeed("a", next))
    assert.isFalse(breaker.fail("a", hung, 17_000))
    assert.isFalse(breaker.isOpen("a"))
  })

  it("is closed by whichever probe succeeds, however late, and opened again by the first that fails", () => {
    const breaker = make()
    failNow(breaker, "a", 0)
    failNow(breaker, "a", 0)
    const probes = [breaker.admit("a", 5000), breaker.admit("a", 6000), breaker.admit("a", 7000)]
    assert.deepStrictEqual(
      probes.map(({ opening }) => opening !== undefined),
      [true, true, true]
    )
    const [first, second, third] = probes
    if (first === undefined || second === undefined || third === undefined) return assert.fail("no probes")
    assert.isTrue(breaker.succeed("a", first))
    failNow(breaker, "a", 13_000)
    failNow(breaker, "a", 13_000)
    assert.isFalse(breaker.succeed("a", second))
    const again = breaker.admit("a", 18_000)
    assert.isFalse(breaker.fail("a", again, 18_100))
    assert.strictEqual(breaker.untilNext("a", 18_100), 5000)
    assert.isFalse(breaker.succeed("a", third))
  })
})
