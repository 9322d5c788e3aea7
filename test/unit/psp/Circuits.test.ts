/** Circuit breakers of the processor: the calls that each failure refuses, for how long, and the metrics of that. */
import { assert, it } from "@effect/vitest"
import { Array, Duration, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as Circuits from "../../../src/psp/Circuits.ts"
import * as Psp from "../../../src/psp/PspClient.ts"
import { samples, withRegistry } from "../../support/metrics.ts"

const owner = { organization: "org", account: "a", kind: "charges" } as const

/** Five failures in a row. */
const open = (breaker: ReturnType<typeof Circuits.makeBreaker>, key: string, time: number) =>
  Array.makeBy(5, () => breaker.admit(key, owner, time)("fails", time))

it("a circuit is forgotten past ten thousand: the one that failed longest ago", () => {
  const breaker = Circuits.makeBreaker()
  for (let key = 0; key <= 10_000; key += 1) open(breaker, `key ${key}`, 0)
  const isOpen = [0, 1, 10_000].map((key) => breaker.isOpen(`key ${key}`))
  assert.deepStrictEqual(isOpen, [false, true, true])
})

it("a circuit opens for 5 seconds, then admits a probe each second", () => {
  const breaker = Circuits.makeBreaker()
  assert.strictEqual(breaker.untilNext("a", 0), 0)
  assert.deepStrictEqual(open(breaker, "a", 0), [undefined, undefined, undefined, undefined, "opened"])
  const until = (...times: ReadonlyArray<number>) => times.map((time) => breaker.untilNext("a", time))
  assert.deepStrictEqual(until(0, 1500, 4999, 5000), [5000, 3500, 1, 0])
  breaker.admit("a", owner, 5000)
  assert.deepStrictEqual(until(5400, 5999, 6000), [600, 1, 0])
  assert.strictEqual(breaker.untilNext("b", 0), 0)
})

it("a circuit ignores results of calls that were admitted before it opened or closed", () => {
  const breaker = Circuits.makeBreaker()
  const calls = Array.makeBy(7, () => breaker.admit("a", owner, 0))
  const results = calls.map((settle, index) => settle(index === 6 ? "works" : "fails", 4000))
  assert.deepStrictEqual(results, [undefined, undefined, undefined, undefined, "opened", undefined, undefined])
  assert.strictEqual(breaker.untilNext("a", 4000), 5000)
  const [hung, next] = [breaker.admit("a", owner, 9000), breaker.admit("a", owner, 10_000)]
  assert.strictEqual(next("works", 10_000), "closed")
  assert.isUndefined(hung("fails", 17_000))
  assert.isFalse(breaker.isOpen("a"))
})

it("a circuit is closed by the first probe that succeeds, and kept open by one that fails", () => {
  const breaker = Circuits.makeBreaker()
  open(breaker, "a", 0)
  const [first, second] = [breaker.admit("a", owner, 5000), breaker.admit("a", owner, 6000)]
  assert.strictEqual(first("works", 12_000), "closed")
  open(breaker, "a", 13_000)
  assert.isUndefined(second("works", 13_500))
  const [third, fourth] = [breaker.admit("a", owner, 18_000), breaker.admit("a", owner, 19_000)]
  assert.isUndefined(third("fails", 18_100))
  assert.strictEqual(breaker.untilNext("a", 18_100), 5000)
  assert.isUndefined(fourth("works", 19_500))
  assert.isTrue(breaker.isOpen("a"))
})

const fails = (blame: Psp.PspFailed["blame"]) => Effect.fail(new Psp.PspFailed({ blame, reason: "503" }))

/** Calls by their results. */
const results = {
  works: Effect.void,
  account: fails("account"),
  unauthorized: fails("unauthorized"),
  unclear: fails("unclear"),
  permission: fails("permission"),
  psp: fails("psp"),
  request: fails("request"),
  cursor: Effect.fail(new Psp.CursorUnknown()),
  disconnected: Effect.fail(new Psp.AccountDisconnected()),
  limited: Effect.fail(new Psp.RateLimited({ retryAfter: Duration.minutes(1) })),
  leavesEarly: Effect.never,
  leavesLate: Effect.never,
  hangs: Effect.never,
  isSilent: Effect.never
}
type Result = keyof typeof results

/** How long a client waits before it leaves, in milliseconds. */
const patience: Partial<Record<Result, number>> = { leavesEarly: 249, leavesLate: 250, hangs: 4999, isSilent: 5000 }

/** Circuits, and a call with a result for an organization and an account, such as `1a`. Returns whether it was made. */
const stand = Effect.gen(function* () {
  const circuits = yield* Circuits.make
  yield* circuits.watch
  const call = Effect.fnUntraced(function* (who: string, result: Result) {
    let isMade = false
    const made = Effect.suspend((): Effect.Effect<unknown, Psp.PspError> => {
      isMade = true
      return results[result]
    })
    const [organization = "", account = "", payouts] = who
    const kind = payouts === undefined ? "charges" : "payouts"
    const fiber = yield* Effect.forkChild(circuits.guard({ organization, account, kind }, made), {
      startImmediately: true
    })
    const waits = patience[result]
    if (waits !== undefined) {
      yield* TestClock.adjust(waits)
      yield* Fiber.interrupt(fiber)
    }
    yield* Fiber.await(fiber)
    return isMade
  })
  /** Makes calls, one after the other. `1a 2b:works` is one with the result, and one that works. */
  const calls = (sequence: string, result: Result) =>
    Effect.forEach(sequence.split(" "), (each) => {
      const [who = "", named] = each.split(":")
      return call(who, Object.keys(results).find((name): name is Result => name === named) ?? result)
    })
  return { ...circuits, calls }
})

const fiveOf = (who: string) => Array.makeBy(5, () => who).join(" ")

it.effect.each(["account", "unauthorized", "unclear", "leavesLate"] as const)(
  "five calls in a row that end so open the circuit of an account, and no other: %s",
  (result) =>
    Effect.gen(function* () {
      const { calls, isOpen, isUp } = yield* stand
      yield* calls("1a 1a 1a 1a", result)
      assert.isFalse(isOpen(owner))
      yield* calls("1a", result)
      assert.deepStrictEqual([isOpen(owner), yield* isUp], [true, true])
      assert.deepStrictEqual(yield* calls("1a 2a 1ap 1b", "works"), [false, false, false, true])
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* calls("1a 1a", "works"), [true, true])
    }).pipe(withRegistry)
)

it.effect.each(["cursor", "disconnected", "limited", "request", "leavesEarly", "works"] as const)(
  "no number of calls that end so opens the circuit of an account, or of the processor: %s",
  (result) =>
    Effect.gen(function* () {
      const { calls, isOpen } = yield* stand
      assert.notInclude(yield* calls(`${fiveOf("1a")} ${fiveOf("1a")}`, result), false)
      assert.isFalse(isOpen(owner))
    }).pipe(withRegistry)
)

it.effect("A permission that the key lacks is counted for its kind of objects alone", () =>
  Effect.gen(function* () {
    const { calls } = yield* stand
    yield* calls("1ap 1a:works 1ap 1ap 1a:works 1ap 1ap", "permission")
    assert.deepStrictEqual(yield* calls("1ap 1a 1bp", "works"), [false, true, true])
    yield* TestClock.adjust("5 seconds")
    assert.deepStrictEqual(yield* calls("1ap 1ap", "works"), [true, true])
  }).pipe(withRegistry)
)

it.effect.each([
  ["failures for one account", "psp", "1a 1a 1a 1a 1a", false],
  ["a call in between that works", "psp", "1a 1a 1a 1a 1b:works 1a 1a 1a 1a", true],
  ["one in between that the account causes", "psp", "1a 1a 1a 1a 1b:account 1a 1a 1a 1a", true],
  ["one in between that the processor refuses", "psp", "1a 1a 1a 1a 1b:request 1a 1a 1a 1a", true],
  ["unclear ones, four of one organization", "unclear", "1a 1a 1b 1c 1d 1e 1f 2b", true],
  ["unclear ones, three of one organization", "unclear", "1a 1a 1b 1c 2b 2b", false],
  ["our key refused twice for one account", "unauthorized", "1a 2a 3b 3b 3c 4d", true],
  ["our key refused for five accounts of two organizations", "unauthorized", "1a 1b 1a 1b 1c 1d 2e 2f", false],
  ["accounts that fail", "account", "1a 2b 3c 4d 5e 6f 7g", true],
  ["accounts that hang", "hangs", "1a 2b 3c 4d 5e 6f 7g", true],
  ["silence for 5 seconds, for four accounts", "isSilent", "1a 2b 2b 3c 4d 4d", true],
  ["silence for 5 seconds, for five accounts of two organizations", "isSilent", "1a 1b 1c 1d 2e 2f", false]
] as const)(
  "the processor's circuit is opened by five failures that accounts cannot explain: %s",
  ([, result, calls, isUp]) =>
    Effect.gen(function* () {
      const circuits = yield* stand
      assert.notInclude(yield* circuits.calls(calls, result), false)
      assert.strictEqual(yield* circuits.isUp, isUp)
      assert.deepStrictEqual(yield* circuits.calls("8y", "works"), [isUp])
    }).pipe(withRegistry)
)

it.effect("the processor's circuit is not kept open by an account whose own failures were counted", () =>
  Effect.gen(function* () {
    const { calls, isUp } = yield* stand
    yield* calls("1a 1a 1a 1a 2b 2b", "unclear")
    yield* TestClock.adjust("5 seconds")
    assert.deepStrictEqual(yield* calls("1a", "unclear"), [true])
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(yield* calls("1y 1y", "works"), [true, true])
    assert.isTrue(yield* isUp)
  }).pipe(withRegistry)
)

it.effect("metrics of the processor show an open circuit until it closes; a refused call is no call", () =>
  Effect.gen(function* () {
    const { calls } = yield* stand
    const state = Effect.map(samples, (all) => [
      all['practice_data_dependency_up{dependency="processor"}'],
      all["practice_data_processor_request_duration_seconds_count"]
    ])
    assert.deepStrictEqual(yield* state, [1, 0])
    yield* calls(`${fiveOf("1a")} 1a`, "account")
    assert.deepStrictEqual(yield* state, [1, 5])
    yield* calls(`${fiveOf("1b")} 1b`, "psp")
    assert.deepStrictEqual(yield* state, [0, 10])
    yield* TestClock.adjust("5 seconds")
    yield* calls("1a", "works")
    assert.deepStrictEqual(yield* state, [1, 11])
  }).pipe(withRegistry)
)
