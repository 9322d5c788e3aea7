/** What is made from the lists of metrics and alerts is up to date, and asks for nothing that no service tells. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { type Definition, metrics } from "../../src/observability/Metrics.ts"
import { alerts } from "../../scripts/operations/alerts.ts"
import { queries } from "../../scripts/operations/dashboard.ts"
import { files } from "../../scripts/operations/made.ts"
import { anchorOf } from "../../scripts/operations/rules.ts"
import { places, read } from "../../scripts/operations/tables.ts"
import { parse, type Selector, selectorsOf } from "../support/promql/Query.ts"

const root = new URL("../../", import.meta.url)

const fileOf = (path: string) => readFileSync(new URL(path, root), "utf8")

const stale = (path: string) => `${path} is stale: run \`npm run generate\``

// The formatter aligns tables.
const plain = (table: string | undefined) => table?.replaceAll(/-{3,}/g, "---").replaceAll(/ +/g, " ")

describe("is up to date:", () => {
  it.each(Object.entries(files()))("%s", (name, text) => {
    const path = `scripts/operations/${name}`
    assert.isTrue(fileOf(path) === text, stale(path))
  })

  it.each(places.map((place) => [`${place.name} in ${place.file}`, place] as const))(
    "%s",
    (_, { file, name, text }) => {
      assert.isTrue(plain(read(fileOf(file), name)) === plain(text()), stale(file))
    }
  )
})

/** A metric of the list, by the name of one of its series. */
const definitionOf = (name: string): Definition | undefined => {
  const all: Readonly<Record<string, Definition>> = metrics
  const histogram = all[name.replace(/_(bucket|sum|count)$/, "")]
  return all[name] ?? (histogram?.buckets === undefined ? undefined : histogram)
}

// What Prometheus and its configuration add.
const added = ["job", "instance", "process"]

const problemOf = ({ matchers, name }: Selector) => {
  if (name === "up") return undefined
  const definition = definitionOf(name)
  if (definition === undefined) return `no metric ${name}`
  for (const { label, operator, value } of matchers) {
    if (added.includes(label)) continue
    const values = definition.labels[label]
    if (values === undefined) return `${name} has no label ${label}`
    if ("atMost" in values) continue
    const asked = operator.endsWith("~") ? value.split("|") : [value]
    const unknown = asked.find((one) => !values.includes(one))
    if (unknown !== undefined) return `${label} of ${name} is never ${unknown}`
  }
  return undefined
}

const inGrafana = (query: string) =>
  query.replaceAll("$__rate_interval", "20s").replaceAll("$job", "practice-data").replaceAll("$instance", ".*")

it("each query of the alerts and the dashboard asks for metrics, labels and values of the list", () => {
  const all = [...alerts.map(({ expression }) => expression), ...queries.map(({ expression }) => inGrafana(expression))]
  const problems = all.flatMap((query) => selectorsOf(Result.getOrThrow(parse(query))).map(problemOf))
  assert.deepStrictEqual(
    problems.filter((problem) => problem !== undefined),
    []
  )
})

it("each metric of the list is on the dashboard", () => {
  const asked = new Set(
    queries
      .flatMap(({ expression }) => selectorsOf(Result.getOrThrow(parse(inGrafana(expression)))))
      .map(({ name }) => definitionOf(name)?.help)
  )
  // Of these there is an alert.
  const others = [
    "practice_data_organization_requests_total",
    "practice_data_tasks_read_timestamp_seconds",
    "practice_data_stopping"
  ]
  const all: Readonly<Record<string, Definition>> = metrics
  assert.sameMembers(
    Object.keys(all).filter((name) => !asked.has(all[name]?.help)),
    others
  )
})

it("each alert has a name of its own, and an entry in the runbook that its annotation leads to", () => {
  assert.strictEqual(new Set(alerts.map(({ name }) => name)).size, alerts.length)
  const anchors = [...fileOf("README.md").matchAll(/<a id="(practicedata\w+)">/g)].map(([, anchor]) => anchor)
  assert.deepStrictEqual(anchors, alerts.map(anchorOf))
  const rules = fileOf("scripts/operations/alerts.yaml")
  assert.sameMembers(
    [...rules.matchAll(/runbook_url: 'README\.md#(\w+)'/g)].map(([, anchor]) => anchor),
    anchors
  )
})

it("an alert that another one names is there", () => {
  const names = alerts.map(({ name }) => name)
  const mentioned = alerts.flatMap(({ act, means }) => `${means} ${act}`.match(/PracticeData\w+/g) ?? [])
  assert.deepStrictEqual(
    mentioned.filter((name) => !names.includes(name)),
    []
  )
})
