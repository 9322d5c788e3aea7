/** The text of /metrics. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Exposition from "../../../src/observability/Exposition.ts"
import * as Series from "../../../src/observability/Series.ts"
import { samples, samplesOf, withRegistry } from "../../support/metrics.ts"

const one = `# HELP a_total What a says.
# TYPE a_total counter
a_total{path="{x} y"} 1
# HELP b What b says.
# TYPE b gauge
b 2
`

describe("the metrics of several processes", () => {
  const text = Exposition.merged([
    { process: "parent", text: "# HELP b What b says.\n# TYPE b gauge\nb 7\n" },
    { process: "1", text: one },
    { process: "2", text: one }
  ])

  it("are told apart by a label, described once, and stand together", () => {
    assert.deepStrictEqual(
      text.split("\n").map((line) => line.split(/[{ ]/, 3).join(" ")),
      [
        "# HELP b",
        "# TYPE b",
        'b process="parent"} 7',
        'b process="1"} 2',
        'b process="2"} 2',
        "# HELP a_total",
        "# TYPE a_total",
        'a_total process="1",path=" x}',
        'a_total process="2",path=" x}',
        ""
      ]
    )
  })

  it("are none of none", () => {
    assert.deepStrictEqual(samplesOf(Exposition.merged([{ process: "1", text: "" }])), {})
  })
})

describe("a label", () => {
  it.effect("of any text is one line", () =>
    Effect.gen(function* () {
      const organization = 'org"} 1\n# TYPE evil counter\nevil\\'
      const { counter } = yield* Series.current
      counter("practice_data_organization_requests_total", { organization, status: "2xx" }).add()
      assert.deepStrictEqual(yield* samples, {
        'practice_data_organization_requests_total{organization="org\\"} 1\\n# TYPE evil counter\\nevil\\\\",status="2xx"}': 1
      })
    }).pipe(withRegistry)
  )
})
