/** The bounds of pending tasks, and when they are counted. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as Backlog from "../../../src/deletions/Backlog.ts"

/** Room in backlogs, a delivery to an organization, and how often its tasks were counted. Nobody else has any. */
const backlog = (tasks: number, isKnown = true) => {
  const state = { tasks, counts: 0 }
  const count = (organization?: string) =>
    Effect.sync(() => {
      if (organization === undefined) return { tasks: 0, isKnown: false }
      state.counts += 1
      return { tasks: state.tasks, isKnown }
    })
  const room = Backlog.makeRoom(Backlog.bounds, count)
  return { state, deliver: (organization: string) => Effect.map(room(organization), ({ hasRoom }) => hasRoom) }
}

it.effect.each([
  ["known", true, 10_000],
  ["unknown", false, 5000]
] as const)("an %s organization has room up to its bound", ([, isKnown, tasks]) =>
  Effect.gen(function* () {
    assert.isTrue(yield* backlog(tasks - 1, isKnown).deliver("org_a"))
    assert.isFalse(yield* backlog(tasks, isKnown).deliver("org_a"))
  })
)

it.effect("a backlog with room is counted again when a sixteenth of the rest is used up", () =>
  Effect.gen(function* () {
    const { deliver, state } = backlog(10_000 - 16 * 17)
    yield* Effect.replicateEffect(deliver("org_a"), 17)
    assert.strictEqual(state.counts, 1)
    yield* deliver("org_a")
    assert.strictEqual(state.counts, 2)
  })
)

it.effect("a full backlog is counted again after a second", () =>
  Effect.gen(function* () {
    const { deliver, state } = backlog(10_000)
    assert.isFalse(yield* deliver("org_a"))
    state.tasks = 0
    yield* TestClock.adjust("999 millis")
    assert.isFalse(yield* deliver("org_a"))
    yield* TestClock.adjust("1 milli")
    assert.isTrue(yield* deliver("org_a"))
    assert.strictEqual(state.counts, 2)
  })
)

it.effect("ten thousand organizations are kept, and the one that was longest unused is counted again", () =>
  Effect.gen(function* () {
    const { deliver, state } = backlog(0)
    for (let organization = 0; organization < 10_000; organization++) yield* deliver(`${organization}`)
    yield* deliver("one more")
    yield* deliver("1")
    assert.strictEqual(state.counts, 10_001)
    yield* deliver("0")
    assert.strictEqual(state.counts, 10_002)
  })
)
