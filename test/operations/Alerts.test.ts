/** Each alert fires for its fault, says what it is, and no other one fires; a healthy service has none. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { alerts } from "../../scripts/operations/alerts.ts"
import { make, rendered } from "../support/promql/Rules.ts"
import { cases, seriesOf, spanOf } from "./alertCases.ts"

const evaluate = Result.getOrThrow(make(alerts.map((alert) => ({ ...alert, for: 0 }))))

describe("at the end of a fault", () => {
  it.each(cases.map((given) => [given.fault, given] as const))("%s", (_, given) => {
    const { seconds } = spanOf(given)
    const active = Result.getOrThrow(evaluate(seriesOf(given), seconds))
    assert.sameMembers([...new Set(active.map(({ name }) => name))], Object.keys(given.fires))
    for (const { name, summary } of active) {
      assert.include(summary, given.fires[name] ?? "")
      assert.notInclude(summary, "{{")
    }
  })
})

it("each alert has a fault", () => {
  const tried = new Set(cases.flatMap(({ fires }) => Object.keys(fires)))
  assert.deepStrictEqual(
    alerts.map(({ name }) => name).filter((name) => !tried.has(name)),
    []
  )
})

const shown = (format: string, value: number) => rendered(`{{ $value | ${format} }}`, {}, value)

it("values are shown as Prometheus shows them", () => {
  assert.deepStrictEqual(
    [
      shown("humanize", 1234567),
      shown("humanizeDuration", 3725),
      shown("humanizeDuration", 0.25),
      shown("humanizePercentage", 0.0512)
    ],
    ["1.235M", "1h 2m 5s", "250ms", "5.12%"]
  )
})
