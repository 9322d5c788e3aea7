/** The bounds of a backlog, and when it is counted. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as Claims from "../../../src/deletions/Claims.ts"

/** Room in backlogs, a delivery to an organization, and how often its backlog was counted. */
const backlog = (tasks: number, bytes: number, isKnown = true) => {
  const state = { tasks, bytes, counts: 0 }
  const count = Effect.sync(() => {
    state.counts += 1
    return { tasks: state.tasks, bytes: state.bytes, isKnown }
  })
  const hasRoom = Claims.makeRoom(Claims.bounds, () => count)
  return { state, deliver: (organization: string, size = 1) => hasRoom(organization, size) }
}

const mebibyte = 1024 * 1024

it.effect.each([
  ["known", true, 100_000, 256 * mebibyte],
  ["unknown", false, 10_000, 64 * mebibyte]
] as const)("an %s organization has room up to its tasks and its bytes", ([, isKnown, tasks, bytes]) =>
  Effect.gen(function* () {
    const room = (given: number, stored: number) => backlog(given, stored, isKnown).deliver("org_a")
    assert.isTrue(yield* room(tasks - 1, bytes - 1))
    assert.isFalse(yield* room(tasks, bytes - 1))
    assert.isFalse(yield* room(tasks - 1, bytes))
  })
)

it.effect("a backlog with room is counted again when a sixteenth of the rest is used up, in tasks or in bytes", () =>
  Effect.gen(function* () {
    const { deliver, state } = backlog(100_000 - 16 * 17, 256 * mebibyte - 16 * 100)
    const countsAfter = (organization: string, size: number, deliveries: number) =>
      Effect.map(Effect.replicateEffect(deliver(organization, size), deliveries), () => state.counts)
    assert.strictEqual(yield* countsAfter("org_a", 1, 17), 1)
    assert.strictEqual(yield* countsAfter("org_a", 1, 1), 2)
    assert.strictEqual(yield* countsAfter("org_b", 50, 2), 3)
    assert.strictEqual(yield* countsAfter("org_b", 50, 1), 4)
  })
)

it.effect("a full backlog is counted again after a second", () =>
  Effect.gen(function* () {
    const { deliver, state } = backlog(100_000, 0)
    assert.isFalse(yield* deliver("org_a"))
    state.tasks = 0
    yield* TestClock.adjust("999 millis")
    assert.isFalse(yield* deliver("org_a"))
    assert.strictEqual(state.counts, 1)
    yield* TestClock.adjust("1 milli")
    assert.isTrue(yield* deliver("org_a"))
  })
)

it.effect("ten thousand organizations are remembered, and the one that was longest unused is counted again", () =>
  Effect.gen(function* () {
    const { deliver, state } = backlog(0, 0)
    for (let organization = 0; organization < 10_000; organization++) yield* deliver(`${organization}`)
    yield* deliver("0")
    assert.strictEqual(state.counts, 10_000)
    yield* deliver("one more")
    yield* deliver("0")
    assert.strictEqual(state.counts, 10_001)
    yield* deliver("1")
    assert.strictEqual(state.counts, 10_002)
  })
)
