/** The lines of a step that a person waits for. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock, TestConsole } from "effect/testing"
import * as Printed from "../../../src/process/Printed.ts"

it.effect.each([true, false])(
  "a step says every ten seconds how long it takes, and its end if it was needed: %s",
  (isNeeded) =>
    Effect.gen(function* () {
      const running = Printed.step("2 of 3: the tables", Effect.sleep("24 seconds"), () => isNeeded)
      yield* Effect.all([running, TestClock.adjust("24 seconds")], { concurrency: "unbounded" })
      const times = ["10 s so far", "20 s so far", ...(isNeeded ? ["24 s"] : [])]
      const expected = times.map((time) => `2 of 3: the tables, ${time}`)
      assert.deepStrictEqual<unknown>(yield* TestConsole.errorLines, expected)
    })
)
