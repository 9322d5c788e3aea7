/** Background work outlives failures and bugs. */
import { assert, it } from "@effect/vitest"
import { Array, Duration, Effect, Fiber, Logger } from "effect"
import { TestClock } from "effect/testing"
import { forever, pauseAfter } from "../../../src/observability/Loop.ts"

it("A run that ends again and again restarts after a pause that doubles, up to half a minute", () => {
  const pauses = Array.scan(Array.range(1, 11), Duration.zero, (before) => pauseAfter(before, Duration.seconds(60)))
  const expected = [0, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]
  assert.deepStrictEqual(pauses.map(Duration.toMillis), expected)
  assert.strictEqual(Duration.toMillis(pauseAfter(Duration.seconds(30), Duration.seconds(61))), 100)
})

it.effect("A loop starts again after a failure, a bug or an inner interruption, which is logged", () =>
  Effect.gen(function* () {
    const lines: Array<string> = []
    const ends = [Effect.fail("failure"), Effect.die(new Error("bug")), Effect.interrupt]
    let steps = 0
    const step = Effect.suspend((): Effect.Effect<void, string> => ends[steps++] ?? Effect.sleep("1 second"))
    const fiber = yield* forever("The test", step).pipe(
      Effect.provide(Logger.layer([Logger.map(Logger.formatJson, (line) => lines.push(line))])),
      Effect.forkScoped({ startImmediately: true })
    )
    yield* TestClock.adjust("10 seconds")
    assert.isAbove(steps, 9)
    yield* Fiber.interrupt(fiber)
    const pauses = lines.map((line) => /The test failed. Restarting in (\w+)/.exec(line)?.[1])
    assert.deepStrictEqual(pauses, ["100ms", "200ms", "400ms"])
    assert.include(lines[1], "bug")
    const levels = lines.map((line) => /"level":"(\w+)"/.exec(line)?.[1])
    assert.deepStrictEqual(levels, ["WARN", "ERROR", "WARN"])
  })
)
