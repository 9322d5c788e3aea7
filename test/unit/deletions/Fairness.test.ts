/** The bound of a backlog: when it is counted. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as Fairness from "../../../src/deletions/Fairness.ts"

/** A backlog, and how often it was counted. */
const backlog = (tasks: number) => {
  const state = { tasks, counts: 0 }
  const count = Effect.sync(() => {
    state.counts += 1
    return { tasks: state.tasks, bytes: 0, isKnown: true }
  })
  return { state, count }
}

it.effect("a backlog with room is not counted for each delivery", () =>
  Effect.gen(function* () {
    const hasRoom = Fairness.makeRoom(Fairness.bounds)
    const { count, state } = backlog(0)
    for (let index = 0; index < 6000; index++) assert.isTrue(yield* hasRoom("org_a", 100, count))
    assert.strictEqual(state.counts, 1)
  })
)

it.effect("a full backlog is counted again after a second", () =>
  Effect.gen(function* () {
    const hasRoom = Fairness.makeRoom(Fairness.bounds)
    const { count, state } = backlog(Fairness.bounds.known.tasks)
    assert.isFalse(yield* hasRoom("org_a", 1, count))
    state.tasks = 0
    yield* TestClock.adjust("999 millis")
    assert.isFalse(yield* hasRoom("org_a", 1, count))
    assert.strictEqual(state.counts, 1)
    yield* TestClock.adjust("1 milli")
    assert.isTrue(yield* hasRoom("org_a", 1, count))
  })
)
