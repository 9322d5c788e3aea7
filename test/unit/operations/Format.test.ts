/** Times, durations and numbers as text. */
import { assert, it as test } from "@effect/vitest"
import * as Format from "../../../src/operations/Format.ts"

test("durations have their largest unit, latencies and shares few digits", () => {
  assert.deepStrictEqual([59_999, 60_000, 7_199_999, 7_200_000, 172_800_000, -5000, Infinity].map(Format.span), [
    "59 s",
    "1 min",
    "119 min",
    "2 h",
    "2 days",
    "5 s",
    "∞"
  ])
  const latencies = [undefined, Infinity, 0.256, 3, 12.4, 1500].map(Format.latency)
  assert.deepStrictEqual(latencies, ["–", "over 5 s", "0.26 ms", "3 ms", "12 ms", "1,500 ms"])
  assert.deepStrictEqual(
    [Format.share(0, 0), Format.share(0, 9), Format.share(1, 3), Format.share(1, 81_000)],
    ["–", "0 %", "33 %", "0.0012 %"]
  )
  assert.deepStrictEqual(
    [Format.count(12_345), Format.count(999.5), Format.count(10_001, 10_000)],
    ["12,345", "1,000", "over 10,000"]
  )
  assert.deepStrictEqual(Format.moment("10000-01-01T00:00:00.000Z", 0), Format.moment(null, 0))
})
