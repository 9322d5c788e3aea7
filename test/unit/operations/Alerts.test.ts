/** The alerts and the dashboard: they ask for metrics that exist, and each alert fires for its fault alone. */
import { execFile } from "node:child_process"
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Data, Effect } from "effect"
import { metricsTable, written } from "../../../scripts/operations/metrics.ts"
import { type Definition, metrics } from "../../../src/observability/Metrics.ts"
import { json } from "../../support/Client.ts"
import * as Prometheus from "../../support/Prometheus.ts"
import { long } from "../../support/tries.ts"
import { cases, seriesOf, spanOf } from "./alertCases.ts"

const root = join(import.meta.dirname, "../../..")
const textOf = (path: string) => readFileSync(join(root, path), "utf8")
const alertsFile = "scripts/operations/alerts.yaml"
const rules = textOf(alertsFile)
const dashboard = textOf("scripts/operations/dashboard.json")

const matches = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, found = ""]) => found)
const alerts = matches(rules, /- alert: (\w+)/g)

// The formatter aligns tables.
const plain = (table: string | undefined) => table?.replaceAll(/-{3,}/g, "---").replaceAll(/ +/g, " ")

it("the table of metrics in the operators' guide is up to date (`npm run generate`)", () => {
  assert.isTrue(plain(written()) === plain(metricsTable()))
})

it("each metric that an alert or the dashboard asks for exists, and each label", () => {
  const all: Readonly<Record<string, Definition>> = metrics
  const selectors = [...`${rules}\n${dashboard}`.matchAll(/\b((?:practice_data|nodejs|process)_\w+)(?:\{([^}]*)\})?/g)]
  const problems = selectors.flatMap(([, name = "", matchers = ""]) => {
    const definition = all[name] ?? all[name.replace(/_(bucket|sum|count)$/, "")]
    if (definition === undefined) return [`no metric ${name}`]
    const labels = matches(matchers, /(\w+)(?:=|!=|=~|!~)\\?"/g)
    const known = [...Object.keys(definition.labels), "job", "instance", "process", "le"]
    return labels.filter((label) => !known.includes(label)).map((label) => `${name} has no label ${label}`)
  })
  assert.deepStrictEqual(problems, [])
})

it("each alert has a name of its own, a fault, and an entry in the runbook that its annotation leads to", () => {
  assert.strictEqual(new Set(alerts).size, alerts.length)
  const anchors = alerts.map((name) => name.toLowerCase())
  assert.sameMembers(matches(textOf("README.md"), /<a id="(practicedata\w+)">/g), anchors)
  assert.deepStrictEqual(matches(rules, /runbook_url: 'README\.md#(\w+)'/g), anchors)
  const tried = new Set(cases.flatMap(({ fires }) => Object.keys(fires)))
  assert.deepStrictEqual(
    alerts.filter((name) => !tried.has(name)),
    []
  )
})

class PromtoolFailed extends Data.TaggedError("PromtoolFailed")<{ readonly message: string }> {}

const promtool = (cwd: string, ...args: ReadonlyArray<string>) =>
  Effect.callback<string, PromtoolFailed>((resume) => {
    execFile("promtool", args, { cwd, maxBuffer: 64 * 1024 * 1024 }, (cause, stdout, stderr) =>
      resume(
        cause === null
          ? Effect.succeed(stdout)
          : Effect.fail(new PromtoolFailed({ message: (stdout + stderr).slice(0, 4000) }))
      )
    )
  })

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "practice-data-alerts-"))),
  (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
)

// Only what a rule asks for: promtool takes long for hundreds of series.
const asked = new Set(rules.match(/\w+/g))

const testOf = (given: (typeof cases)[number]) => {
  const { seconds, step } = spanOf(given)
  return {
    name: given.fault,
    interval: `${step}s`,
    input_series: seriesOf(given)
      .filter(({ labels }) => asked.has(labels["__name__"] ?? ""))
      .map(({ labels: { __name__: name, ...labels }, samples }) => ({
        series: `${name}{${Object.entries(labels)
          .map(([label, value]) => `${label}=${json(value)}`)
          .join(",")}}`,
        values: samples.map(({ value }) => value ?? "_").join(" ")
      })),
    promql_expr_test: [
      {
        expr: 'group by (alertname) (ALERTS{alertstate="firing"})',
        eval_time: `${seconds}s`,
        exp_samples: Object.keys(given.fires).map((name) => ({ labels: `{alertname="${name}"}`, value: 1 }))
      }
    ]
  }
}

it.live.skipIf(!Prometheus.isInstalled)(
  Prometheus.named("promtool says that each fault fires its alerts and no others, and a healthy service none"),
  () =>
    Effect.gen(function* () {
      const made = yield* folder
      copyFileSync(join(root, alertsFile), join(made, "alerts.yaml"))
      yield* promtool(made, "check", "rules", "alerts.yaml")
      for (const step of [5, 60]) {
        writeFileSync(
          join(made, "tests.yaml"),
          json({
            rule_files: ["alerts.yaml"],
            evaluation_interval: `${step}s`,
            tests: cases.filter((given) => spanOf(given).step === step).map(testOf)
          })
        )
        yield* promtool(made, "test", "rules", "tests.yaml")
      }
    }).pipe(Effect.scoped),
  long
)
