/** The bounds of a backlog, and when it is counted. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as Backlog from "../../../src/deletions/Backlog.ts"

/** Room in backlogs, a delivery to an organization, and how often its backlog was counted, and that of all unknown ones. */
const backlog = (tasks: number, bytes: number, isKnown = true) => {
  const state = { tasks, bytes, counts: 0, isKnown, all: { tasks: 0, bytes: 0 }, countsOfAll: 0 }
  const of = Effect.sync(() => {
    state.counts += 1
    return { tasks: state.tasks, bytes: state.bytes, isKnown: state.isKnown }
  })
  const ofAllUnknown = Effect.sync(() => {
    state.countsOfAll += 1
    return { ...state.all, isKnown: false }
  })
  const roomOf = Backlog.makeRoom(Backlog.bounds, { of: () => of, ofAllUnknown })
  const deliver = (organization: string, size = 1) =>
    Effect.map(roomOf(organization, size), ({ hasRoom, isKnown: wasKnown }) => {
      assert.strictEqual(wasKnown, state.isKnown)
      return hasRoom
    })
  return { state, deliver }
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

it.effect.each([
  ["tasks", { tasks: 20_000 - 16, bytes: 0 }, { tasks: 20_000, bytes: 0 }],
  ["bytes", { tasks: 0, bytes: 128 * mebibyte - 16 }, { tasks: 0, bytes: 128 * mebibyte }]
] as const)("all unknown organizations together have room up to their %s", ([, nearly, full]) =>
  Effect.gen(function* () {
    const { deliver, state } = backlog(0, 0, false)
    state.all = nearly
    assert.isTrue(yield* deliver("org_1"))
    state.all = full
    assert.isFalse(yield* deliver("org_2"))
    assert.isFalse(yield* deliver("org_1"))
    assert.strictEqual(state.countsOfAll, 2)
    yield* TestClock.adjust("1 second")
    assert.isFalse(yield* deliver("org_1"))
    assert.strictEqual(state.countsOfAll, 3)
    // One that becomes known is refused no more, and at once.
    state.isKnown = true
    assert.isTrue(yield* deliver("org_1"))
    assert.strictEqual(state.countsOfAll, 3)
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
