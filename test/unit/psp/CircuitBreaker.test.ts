/** Circuits by key, as a state machine: times are numbers. */
import { assert, describe, it } from "@effect/vitest"
import { Array } from "effect"
import { makeBreaker } from "../../../src/psp/Circuits.ts"

type Breaker = ReturnType<typeof makeBreaker>

const admitted = (breaker: Breaker, count: number, time: number) => Array.makeBy(count, () => breaker.admit("a", time))

const open = (breaker: Breaker, key: string, time: number) =>
  Array.makeBy(5, () => breaker.admit(key, time)(false, time))

describe("makeBreaker", () => {
  it("keeps the circuits of ten thousand keys, those that failed last", () => {
    const breaker = makeBreaker()
    for (let key = 0; key <= 10_000; key += 1) open(breaker, `key ${key}`, 0)
    assert.deepStrictEqual(
      [0, 1, 10_000].map((key) => breaker.isOpen(`key ${key}`)),
      [false, true, true]
    )
    assert.strictEqual(breaker.openCircuits(), 10_000)
  })

  it("says how long it is until the next call, also while a probe runs", () => {
    const breaker = makeBreaker()
    assert.strictEqual(breaker.untilNext("a", 0), 0)
    open(breaker, "a", 0)
    assert.strictEqual(breaker.untilNext("a", 1500), 3500)
    assert.strictEqual(breaker.untilNext("a", 5000), 0)
    breaker.admit("a", 5000)
    assert.strictEqual(breaker.untilNext("a", 5400), 600)
    assert.strictEqual(breaker.untilNext("a", 6000), 0)
    assert.strictEqual(breaker.untilNext("b", 0), 0)
  })

  it("ignores the outcome of a call that was admitted before the circuit opened or closed", () => {
    const breaker = makeBreaker()
    const outcomes = admitted(breaker, 7, 0).map((settle, index) => settle(index === 6, 4000))
    assert.deepStrictEqual(outcomes, [undefined, undefined, undefined, undefined, "opened", undefined, undefined])
    assert.strictEqual(breaker.untilNext("a", 4000), 5000)
    const [hung, next] = [breaker.admit("a", 9000), breaker.admit("a", 10_000)]
    assert.strictEqual(next(true, 10_000), "closed")
    assert.isUndefined(hung(false, 17_000))
    assert.isFalse(breaker.isOpen("a"))
  })

  it("is closed by whichever probe succeeds, however late, and opened again by the first that fails", () => {
    const breaker = makeBreaker()
    open(breaker, "a", 0)
    const [first, second] = [breaker.admit("a", 5000), breaker.admit("a", 6000)]
    assert.strictEqual(first(true, 12_000), "closed")
    open(breaker, "a", 13_000)
    assert.isUndefined(second(true, 13_500))
    const [third, fourth] = [breaker.admit("a", 18_000), breaker.admit("a", 19_000)]
    assert.isUndefined(third(false, 18_100))
    assert.strictEqual(breaker.untilNext("a", 18_100), 5000)
    assert.isUndefined(fourth(true, 19_500))
    assert.isTrue(breaker.isOpen("a"))
  })
})
