/** A stop in virtual time: how long a listener serves, and how long it waits for responses. */
import { assert, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { TestClock } from "effect/testing"
import { drain } from "../../../src/http/Listener.ts"

/** Stops a server whose connections stay open, and keeps the steps of its stop. */
const stopping = Effect.gen(function* () {
  const steps: Array<string> = []
  const server = {
    listening: true,
    open: 1,
    beginDrain: () => void steps.push("drain"),
    hold: () => void steps.push("hold"),
    stopAccepting: (done: () => void) => {
      steps.push("stop")
      done()
    },
    closeIdle: () => undefined,
    closeAllConnections: () => void steps.push("close")
  }
  const fiber = yield* Effect.forkChild(drain(server, Duration.seconds(5)), { startImmediately: true })
  const stepsAfter = (time: Duration.Input) => Effect.map(TestClock.adjust(time), () => steps.join(" "))
  return { fiber, server, stepsAfter }
})

it.effect("A stop serves for its duration, then waits up to ten seconds for responses, and closes what is open", () =>
  Effect.gen(function* () {
    const { fiber, stepsAfter } = yield* stopping
    assert.strictEqual(yield* stepsAfter("4900 millis"), "drain")
    assert.strictEqual(yield* stepsAfter("150 millis"), "drain hold")
    assert.strictEqual(yield* stepsAfter("100 millis"), "drain hold stop")
    assert.strictEqual(yield* stepsAfter("9900 millis"), "drain hold stop")
    assert.strictEqual(yield* stepsAfter("100 millis"), "drain hold stop close")
    assert.isDefined(fiber.pollUnsafe())
    // One whose connections are all closed waits for nothing.
    const other = yield* stopping
    yield* other.stepsAfter("6 seconds")
    other.server.open = 0
    assert.strictEqual(yield* other.stepsAfter("10 millis"), "drain hold stop")
    assert.isDefined(other.fiber.pollUnsafe())
  })
)
