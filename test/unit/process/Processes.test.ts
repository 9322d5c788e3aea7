/** The pauses between children that end. */
import { assert, it } from "@effect/vitest"
import { Array, Duration } from "effect"
import { pauseAfter } from "../../../src/process/Processes.ts"

it("A child that ends again and again is replaced after a pause that doubles, up to half a minute", () => {
  const pauses = Array.scan(Array.range(1, 11), Duration.zero, (before) => pauseAfter(before, Duration.seconds(60)))
  const expected = [0, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]
  assert.deepStrictEqual(pauses.map(Duration.toMillis), expected)
  assert.strictEqual(Duration.toMillis(pauseAfter(Duration.seconds(30), Duration.seconds(61))), 100)
})
