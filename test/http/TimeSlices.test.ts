/** Long work in slices lets everybody else go on in between. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { runSync, runSliced, step } from "../../src/http/TimeSlices.ts"

/** Work of some steps, each longer than a slice, that notes when they are done. */
function* noting(name: string, steps: number, notes: Array<string>): Generator<void, string> {
  for (let index = 1; index <= steps; index++) {
    const end = performance.now() + 6
    while (performance.now() < end);
    notes.push(`${name}${index}`)
    yield
  }
  return name
}

/** Notes every turn of the event loop. */
const watching = (notes: Array<string>) => {
  let next = setImmediate(function turn() {
    if (notes.at(-1) !== "|") notes.push("|")
    next = setImmediate(turn)
  })
  return Effect.sync(() => clearImmediate(next))
}

describe("work in slices", () => {
  it.effect("has its result", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* runSliced(() => noting("a", 3, [])), "a")
      assert.strictEqual(runSync(noting("a", 3, [])), "a")
      assert.strictEqual(runSync(step(() => 5)), 5)
    })
  )

  it.effect("takes turns, and the event loop comes round after each slice", () =>
    Effect.gen(function* () {
      const notes: Array<string> = []
      const stop = watching(notes)
      const fibers = yield* Effect.forEach(["a", "b", "c"], (name) =>
        Effect.forkChild(runSliced(() => noting(name, 3, notes)))
      )
      yield* Effect.forEach(fibers, Fiber.join)
      yield* stop
      const done = notes.join(" ")
      assert.notMatch(done, /\w\d \w\d/, done)
      assert.deepStrictEqual(
        notes.filter((note) => note !== "|"),
        ["a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "c3"]
      )
    })
  )

  it.effect("that is interrupted gives its turn away", () =>
    Effect.gen(function* () {
      const notes: Array<string> = []
      const endless = yield* Effect.forkChild(runSliced(() => noting("a", Infinity, notes)))
      yield* runSliced(() => noting("b", 2, notes))
      yield* Fiber.interrupt(endless)
      const before = notes.length
      yield* runSliced(() => noting("c", 2, notes))
      assert.deepStrictEqual(notes.slice(before), ["c1", "c2"])
    })
  )
})
