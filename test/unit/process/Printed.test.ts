import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock, TestConsole } from "effect/testing"
import * as Printed from "../../../src/process/Printed.ts"

/** The lines of a step that takes 24 seconds. */
const linesOf = Effect.fnUntraced(function* (isNeeded: boolean) {
  const running = Printed.step("2 of 3: the tables", Effect.sleep("24 seconds"), () => isNeeded)
  yield* Effect.all([running, TestClock.adjust("24 seconds")], { concurrency: "unbounded" })
  return yield* TestConsole.errorLines
})

describe("A step of the first start", () => {
  it.effect("says every ten seconds how long it takes, and at its end how long it took", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* linesOf(true), [
        "2 of 3: the tables, 10 s so far",
        "2 of 3: the tables, 20 s so far",
        "2 of 3: the tables, 24 s"
      ])
    })
  )

  it.effect("does not say its end where nothing had to be done", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* linesOf(false), [
        "2 of 3: the tables, 10 s so far",
        "2 of 3: the tables, 20 s so far"
      ])
    })
  )
})
