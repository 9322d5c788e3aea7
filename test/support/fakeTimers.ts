/** The timers of Node stand still until `vi.advanceTimersByTime`, until the scope closes. Those of fibers are TestClock's. */
import { Effect } from "effect"
import { vi } from "vitest"

export const fakeTimers = Effect.acquireRelease(
  Effect.sync(() => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })),
  () => Effect.sync(() => vi.useRealTimers())
)
