/**
 * The evaluator beside a real Prometheus: the same random series, the same random queries, the same results. And the rules
 * beside promtool, which tests each alert with the series of its fault.
 *
 * @module-tag long
 */
import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Array, Clock, Data, Effect, Random, Result, Schema } from "effect"
import { alerts } from "../../scripts/operations/alerts.ts"
import { files } from "../../scripts/operations/made.ts"
import { json } from "../blackbox/support/Client.ts"
import * as Prometheus from "../support/Prometheus.ts"
import * as Evaluate from "../support/promql/Evaluate.ts"
import { parse } from "../support/promql/Query.ts"
import { make, type Active } from "../support/promql/Rules.ts"
import { keyOf, type Labels, type Series } from "../support/promql/Series.ts"
import { cases, seriesOf, spanOf } from "./alertCases.ts"

class PromtoolFailed extends Data.TaggedError("PromtoolFailed")<{ readonly message: string }> {}

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "practice-data-prometheus-"))),
  (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
)

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

const labelText = (labels: Labels) =>
  Object.entries(labels)
    .filter(([name]) => name !== "__name__")
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(",")

const seriesText = (labels: Labels) => `${labels["__name__"]}{${labelText(labels)}}`

/** How often the alerts are evaluated, in seconds: as seldom as the faults allow, which takes time enough. */
const pace = (step: number) => Math.max(step, 15)

/** Only what a query asks for: promtool takes long for hundreds of series. */
const asked = new Set(alerts.flatMap(({ expression }) => expression.match(/\w+/g) ?? []))

it.live.skipIf(!Prometheus.isInstalled)(Prometheus.named("promtool agrees with what each fault fires, and says"), () =>
  Effect.gen(function* () {
    const made = yield* folder
    writeFileSync(join(made, "alerts.yaml"), files()["alerts.yaml"])
    yield* promtool(made, "check", "rules", "alerts.yaml")
    const tests = yield* Effect.forEach(cases, (given) =>
      Effect.gen(function* () {
        const { seconds, step } = spanOf(given)
        const series = seriesOf(given)
        const evaluate = yield* Effect.fromResult(make(alerts))
        let active: ReadonlyArray<Active> = []
        for (let at = 0; at <= seconds; at += pace(step)) active = yield* Effect.fromResult(evaluate(series, at))
        const firing = active.filter(({ isFiring }) => isFiring)
        assert.sameMembers([...new Set(firing.map(({ name }) => name))], Object.keys(given.fires), given.fault)
        return {
          name: given.fault,
          interval: `${step}s`,
          input_series: series
            .filter(({ labels }) => asked.has(labels["__name__"] ?? ""))
            .map(({ labels, samples }) => ({
              series: seriesText(labels),
              values: samples.map(({ value }) => value ?? "_").join(" ")
            })),
          alert_rule_test: alerts.map(({ act, means, name }) => ({
            eval_time: `${seconds}s`,
            alertname: name,
            exp_alerts: firing
              .filter((one) => one.name === name)
              .map(({ labels, summary }) => ({
                exp_labels: labels,
                exp_annotations: {
                  summary,
                  description: `${means} ${act}`,
                  runbook_url: `README.md#${name.toLowerCase()}`
                }
              }))
          }))
        }
      })
    )
    for (const [name, step] of [
      ["fine", 5],
      ["coarse", 60]
    ] as const) {
      writeFileSync(
        join(made, `${name}.yaml`),
        json({
          rule_files: ["alerts.yaml"],
          evaluation_interval: `${pace(step)}s`,
          tests: tests.filter(({ interval }) => interval === `${step}s`)
        })
      )
      yield* promtool(made, "test", "rules", `${name}.yaml`)
    }
  }).pipe(Effect.scoped)
)

const names = ["a_total", "b_total", "c"]

/** Counters that are reset now and then, and gauges; some with holes. */
const randomSeries = Effect.fnUntraced(function* (start: number) {
  const series: Array<Series> = []
  for (const name of names) {
    for (const x of ["1", "2", "3"]) {
      for (const y of ["p", "q"]) {
        if ((yield* Random.next) < 0.2) continue
        const samples: Array<Series["samples"][number]> = []
        let value = Math.floor((yield* Random.next) * 10)
        for (let index = 0; index < 60; index++) {
          if ((yield* Random.next) < 0.1) continue
          const step = Math.floor((yield* Random.next) * 5)
          value = name === "c" ? value + step - 2 : (yield* Random.next) < 0.05 ? step : value + step
          const jitter = Math.floor((yield* Random.next) * 400) / 1000
          samples.push({ time: start + index * 5 + jitter, value })
        }
        series.push({ labels: { __name__: name, x, y }, samples })
      }
    }
    // A histogram beside each.
    for (const x of ["1", "2"]) {
      const steps = yield* Effect.forEach(["0.1", "1", "10", "+Inf"], (le) =>
        Effect.map(Random.next, (random) => ({ le, random }))
      )
      let rate = 0
      for (const { le, random } of steps) {
        rate += Math.floor(random * 4)
        const grown = rate
        series.push({
          labels: { __name__: `${name}_bucket`, x, le },
          samples: Array.makeBy(60, (index) => ({ time: start + index * 5 + 0.1, value: index * grown }))
        })
      }
    }
  }
  return series
})

const oneOf = <A>(values: Array.NonEmptyReadonlyArray<A>) => Random.choice(values)

const randomSelector = Effect.gen(function* () {
  const name = yield* oneOf(["a_total", "b_total", "c"])
  const matchers = yield* oneOf(["", '{x="1"}', '{x!="1"}', '{x=~"1|2",y="p"}', '{y!~"p.*"}', '{z=""}', '{x="4"}'])
  return { text: `${name}${matchers}` }
})

const randomVector: (depth: number) => Effect.Effect<string> = Effect.fnUntraced(function* (depth: number) {
  const { text } = yield* randomSelector
  const range = yield* oneOf(["12s", "30s", "1m", "2m"])
  const over = yield* oneOf([
    "rate",
    "increase",
    "delta",
    "changes",
    "resets",
    "min_over_time",
    "max_over_time",
    "avg_over_time",
    "sum_over_time",
    "count_over_time",
    "last_over_time"
  ])
  const leaves = [text, `${over}(${text}[${range}])`, `${over}(${text}[${range}] offset 20s)`, `${text} offset 1m`]
  const leaf = yield* oneOf([text, ...leaves])
  if (depth === 0) return leaf
  const inner = yield* randomVector(depth - 1)
  const aggregation = yield* oneOf(["sum", "min", "max", "avg", "count"])
  const grouping = yield* oneOf(["", "by (x)", "by (y)", "without (x)", "without (x, y)"])
  const operator = yield* oneOf(["+", "-", "*", "/", ">", "<", ">=", "<=", "==", "!="])
  const number = yield* oneOf(["0", "1", "2.5", "10"])
  const set = yield* oneOf(["and", "or", "unless"])
  const on = yield* oneOf(["", "on (x)", "on (x, y)", "ignoring (y)"])
  return yield* oneOf([
    `${aggregation} ${grouping} (${inner})`,
    `(${inner}) ${operator} ${number}`,
    `${number} ${operator} (${inner})`,
    `(${inner}) ${yield* oneOf([">", "<=", "=="])} bool ${number}`,
    `(${inner}) ${set} ${on} (${yield* randomVector(depth - 1)})`,
    `sum by (x) (${inner}) ${operator} on (x) max by (x) (${leaf})`,
    `(${leaf}) * on (x) group_left () sum by (x) (${inner})`,
    `absent(${text} > ${number})`,
    `abs(${inner})`,
    `clamp_min(${inner}, ${number})`,
    `time() - timestamp(${text})`,
    `histogram_quantile(${yield* oneOf(["0.5", "0.95", "0"])}, sum by (le, x) (rate(a_total_bucket[1m])))`,
    `histogram_quantile(0.9, rate(b_total_bucket[1m])) > ${number}`,
    `(${inner}) or vector(${number})`
  ])
})

const Answer = Schema.Union([
  Schema.Struct({
    resultType: Schema.Literal("vector"),
    result: Schema.Array(
      Schema.Struct({
        metric: Schema.Record(Schema.String, Schema.String),
        value: Schema.Tuple([Schema.Finite, Schema.String])
      })
    )
  }),
  Schema.Struct({ resultType: Schema.Literal("scalar"), result: Schema.Tuple([Schema.Finite, Schema.String]) })
])

const numberOf = (text: string) => Number(text.replace("Inf", "Infinity"))

/** Whether two numbers are the same, but for what computing them in another order does. */
const isSame = (a: number, b: number) => Object.is(a, b) || a === b || Math.abs(a - b) <= 1e-6 * Math.abs(b) + 1e-9

it.live.skipIf(!Prometheus.isInstalled)(
  Prometheus.named("the evaluator gives what Prometheus gives"),
  () =>
    Effect.gen(function* () {
      const made = yield* folder
      const now = Math.floor((yield* Clock.currentTimeMillis) / 1000)
      // What is an hour old lies in blocks, and is not younger than what Prometheus keeps.
      const start = now - (now % 7200) - 14_400
      const series = yield* randomSeries(start)
      mkdirSync(join(made, "data"))
      writeFileSync(join(made, "prometheus.yaml"), "global: {}\n")
      writeFileSync(
        join(made, "series.om"),
        series
          .flatMap(({ labels, samples }) => samples.map(({ time, value }) => `${seriesText(labels)} ${value} ${time}`))
          .concat("# EOF\n")
          .join("\n")
      )
      yield* promtool(made, "tsdb", "create-blocks-from", "openmetrics", "series.om", "data")
      const { ask } = yield* Prometheus.start(made)
      const evaluate = Evaluate.make(series)
      let failures = 0
      let results = 0
      for (let index = 0; index < 800; index++) {
        const query = yield* randomVector(yield* Random.nextIntBetween(0, 3))
        const at = start + (yield* Random.nextIntBetween(0, 300)) + 0.55
        const ours = Result.flatMap(parse(query), (expression) => evaluate(expression, at))
        const theirs = yield* Effect.result(ask(Answer, "/api/v1/query", { query, time: String(at) }))
        if (Result.isFailure(ours) || Result.isFailure(theirs)) {
          // Several series of one side that fit are an error of both.
          assert.strictEqual(Result.isFailure(ours), Result.isFailure(theirs), `${query} at ${at}`)
          failures++
          continue
        }
        const expected = new Map(
          theirs.success.resultType === "vector"
            ? theirs.success.result.map(({ metric, value }) => [keyOf(metric), numberOf(value[1])])
            : [["", numberOf(theirs.success.result[1])]]
        )
        const actual = new Map(ours.success.map(({ labels, value }) => [keyOf(labels), value]))
        assert.sameMembers([...actual.keys()], [...expected.keys()], `${query} at ${at}`)
        for (const [key, value] of actual) {
          const other = expected.get(key) ?? Number.NaN
          assert.isTrue(isSame(value, other), `${query} at ${at}: ${value} is not ${other}`)
        }
        results += actual.size
      }
      assert.isAbove(results, 500)
      assert.isBelow(failures, 250)
    }).pipe(Effect.scoped),
  120_000
)
