/** Several processes: how a parent finds that a child hangs, the pauses between children that end, and the memory that they share. */
import { assert, it } from "@effect/vitest"
import { Clock, Deferred, Duration, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { explain } from "../../../src/process/Failure.ts"
import { assertFits, hangs, heapOfEach, portOf } from "../../../src/process/Processes.ts"

const isFound = (probe: Effect.Effect<unknown>, after: Duration.Input) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(hangs(probe), { startImmediately: true })
    yield* TestClock.adjust(after)
    return fiber.pollUnsafe() !== undefined
  })

it.effect("A child hangs that has not answered for 3 seconds, and not earlier", () =>
  Effect.gen(function* () {
    assert.isFalse(yield* isFound(Effect.never, "2900 millis"))
    assert.isTrue(yield* isFound(Effect.never, "3100 millis"))
  })
)

it.effect("A child that answers does not hang, though it stalls for almost as long again and again", () =>
  Effect.gen(function* () {
    assert.isFalse(yield* isFound(Effect.void, "5 minutes"))
    // An answer that is on its way is waited for by all who ask meanwhile.
    const stalls = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      yield* Effect.sleep(Duration.millis(3000 - (now % 3000)))
    })
    assert.isFalse(yield* isFound(stalls, "5 minutes"))
  })
)

it.effect("A child is not blamed for a time in which its parent was not awake", () =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    let stalled = 0n
    // Each timer fires a second late.
    const late: Clock.Clock = Object.assign(Object.create(clock), {
      monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe() + (stalled += 1_000_000_000n)
    })
    const answer = yield* Deferred.make<void>()
    const fiber = yield* Effect.forkChild(Effect.provideService(hangs(Deferred.await(answer)), Clock.Clock, late), {
      startImmediately: true
    })
    yield* TestClock.adjust("1 minute")
    assert.isUndefined(fiber.pollUnsafe())
    yield* Fiber.interrupt(fiber)
  })
)

const refusal = (processes: number, mebibytes: number) =>
  Effect.map(Effect.flip(assertFits(processes, mebibytes * 1024 ** 2)), explain)

it.effect("Processes that do not fit are refused with what is there, what one needs and what to set", () =>
  Effect.gen(function* () {
    assert.strictEqual(
      yield* refusal(2, 256),
      "Invalid configuration. PROCESSES: 2 processes need 512 MiB, 256 MiB each, and this machine or container has 256 MiB. Set PROCESSES=1, or give it more memory"
    )
    assert.include(yield* refusal(8, 1024), "Set PROCESSES=4")
    yield* assertFits(2, 512 * 1024 ** 2)
  })
)

it("Processes together have the heap of one, and each of them as much as one at most", () => {
  // As `npm start` sets it.
  assert.strictEqual(heapOfEach(2, 400, 1000), 200)
  // As Node sets it on a large machine: it divides what one would not take.
  assert.strictEqual(heapOfEach(2, 100, 1000), 100)
  assert.strictEqual(heapOfEach(8, 100, 1000), 50)
})

it("Processes share port 80 too, which their addresses leave out", () => {
  const ports = ["http://0.0.0.0", "http://[::1]", "http://127.0.0.1:3000"].map(portOf)
  assert.deepStrictEqual(ports, [80, 80, 3000])
})
