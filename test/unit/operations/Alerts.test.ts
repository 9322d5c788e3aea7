/** The alerts and the dashboard name metrics that exist, and each alert has a row in the runbook. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { type Definition, metrics } from "../../../src/observability/Metrics.ts"

const root = join(import.meta.dirname, "../../..")
const textOf = (path: string) => readFileSync(join(root, path), "utf8")
const rules = textOf("scripts/operations/alerts.yaml")
const dashboard = textOf("scripts/operations/dashboard.json")

const matches = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, found = ""]) => found)
const alerts = matches(rules, /- alert: (\w+)/g)

// The formatter aligns tables.
it("each metric and label in the alerts and the dashboard exists", () => {
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

it("each alert has a row in the runbook with its text", () => {
  const anchors = alerts.map((name) => name.toLowerCase())
  // Without links, and with the quotes of YAML.
  const runbook = textOf("src/operations/RUNBOOK.md")
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll("'", "''")
  assert.deepStrictEqual(matches(runbook, /<a id="(practicedata\w+)">/g), anchors)
  const rows = matches(runbook, /^\| <a id.*?\) +\| (.*?) +\|$/gm).map((row) => row.replace(/ +\| /, " "))
  assert.deepStrictEqual(matches(rules, /description: '(.*)'/g), rows)
})

it("each alert that Alertmanager inhibits, or inhibits others by, exists", () => {
  const named = matches(textOf("scripts/operations/alertmanager.yaml"), /alertname =~? "?PracticeData([\w(|]+)/g)
  const names = named.flatMap((some) => some.replace("(", "").split("|")).map((name) => `PracticeData${name}`)
  assert.includeMembers(alerts, [...new Set(names)])
})

it("each alert has a fault that fires it", () => {
  const fired = matches(textOf("test/system/operations/alerts.yaml"), /alertname="(\w+)"/g)
  assert.sameMembers([...new Set(fired)], alerts)
})
