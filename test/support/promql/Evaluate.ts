/**
 * Evaluates queries over series as Prometheus 2 does, as far as our rules need it. A test compares it with a real
 * Prometheus, where there is one.
 */
import { Array, Option, Record, Result } from "effect"
import {
  type Aggregation,
  type BinaryOperator,
  type Expression,
  type FunctionName,
  type Grouping,
  type Matcher,
  type Matching,
  QueryError,
  type Selector
} from "./Query.ts"
import { keyOf, type Labels, type Series } from "./Series.ts"

/** A series of the result of a query. */
export interface Element {
  readonly labels: Labels
  readonly value: number
}

export type Vector = ReadonlyArray<Element>

/** Samples of a series in a range that ends at a time. */
interface Range {
  readonly labels: Labels
  readonly points: ReadonlyArray<{ readonly time: number; readonly value: number }>
}

const lookback = 300

const without = (labels: Labels, names: ReadonlyArray<string>) =>
  Record.filter(labels, (_, name) => !names.includes(name))

const only = (labels: Labels, names: ReadonlyArray<string>) => Record.filter(labels, (_, name) => names.includes(name))

const withoutName = (labels: Labels) => without(labels, ["__name__"])

const patterns = new Map<string, RegExp>()

const patternOf = (text: string) => {
  const pattern = patterns.get(text) ?? new RegExp(`^(?:${text})$`, "s")
  patterns.set(text, pattern)
  return pattern
}

const matches = (labels: Labels, { label, operator, value }: Matcher) => {
  const actual = labels[label] ?? ""
  switch (operator) {
    case "=":
      return actual === value
    case "!=":
      return actual !== value
    case "=~":
      return patternOf(value).test(actual)
    case "!~":
      return !patternOf(value).test(actual)
  }
}

const fail = (message: string): never => {
  throw new QueryError({ message })
}

/** The series of a name, found without looking at all the others. */
const indexOf = (series: ReadonlyArray<Series>) => Array.groupBy(series, ({ labels }) => labels["__name__"] ?? "")

const increaseOf = (points: Range["points"]) =>
  points.reduce(
    (sum, { value }, index) => {
      const before = points[index - 1]?.value
      return before !== undefined && value < before ? sum + before : sum
    },
    (points.at(-1)?.value ?? 0) - (points[0]?.value ?? 0)
  )

/** The change over the whole range, of which the samples show a part. */
const extrapolated = (points: Range["points"], start: number, end: number, isCounter: boolean) => {
  const first = points[0]
  const last = points.at(-1)
  if (first === undefined || last === undefined || points.length < 2) return undefined
  const result = isCounter ? increaseOf(points) : last.value - first.value
  const sampled = last.time - first.time
  const average = sampled / (points.length - 1)
  const toZero = isCounter && result > 0 && first.value >= 0 ? sampled * (first.value / result) : Infinity
  const toStart = Math.min(first.time - start, toZero)
  const toEnd = end - last.time
  const threshold = average * 1.1
  const reach = (distance: number) => (distance < threshold ? distance : average / 2)
  return (result * (sampled + reach(toStart) + reach(toEnd))) / sampled
}

const countOfPairs = (points: Range["points"], is: (before: number, value: number) => boolean) =>
  points.filter(({ value }, index) => {
    const before = points[index - 1]?.value
    return before !== undefined && is(before, value)
  }).length

type OverRange = (range: Range, seconds: number, end: number) => number | undefined

const valuesOf = ({ points }: Range) => points.map(({ value }) => value)

const sum = (values: ReadonlyArray<number>) => values.reduce((total, value) => total + value, 0)

/** The least or greatest of what are numbers, if any are. */
const extreme = (pick: (...values: ReadonlyArray<number>) => number) => (values: ReadonlyArray<number>) => {
  const numbers = values.filter((value) => !Number.isNaN(value))
  return numbers.length === 0 ? Number.NaN : pick(...numbers)
}

const least = extreme(Math.min)
const greatest = extreme(Math.max)

const overRange: Partial<Record<FunctionName, OverRange>> = {
  rate: ({ points }, seconds, end) => {
    const change = extrapolated(points, end - seconds, end, true)
    return change === undefined ? undefined : change / seconds
  },
  increase: ({ points }, seconds, end) => extrapolated(points, end - seconds, end, true),
  delta: ({ points }, seconds, end) => extrapolated(points, end - seconds, end, false),
  changes: ({ points }) => countOfPairs(points, (before, value) => before !== value),
  resets: ({ points }) => countOfPairs(points, (before, value) => value < before),
  max_over_time: (range) => greatest(valuesOf(range)),
  min_over_time: (range) => least(valuesOf(range)),
  sum_over_time: (range) => sum(valuesOf(range)),
  avg_over_time: (range) => sum(valuesOf(range)) / range.points.length,
  count_over_time: ({ points }) => points.length,
  last_over_time: ({ points }) => points.at(-1)?.value
}

const arithmetic: Partial<Record<BinaryOperator, (a: number, b: number) => number>> = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b
}

const comparison: Partial<Record<BinaryOperator, (a: number, b: number) => boolean>> = {
  "==": (a, b) => a === b,
  "!=": (a, b) => a !== b,
  ">": (a, b) => a > b,
  "<": (a, b) => a < b,
  ">=": (a, b) => a >= b,
  "<=": (a, b) => a <= b
}

const apply = (operator: BinaryOperator, a: number, b: number, isBool: boolean) => {
  const compute = arithmetic[operator]
  if (compute !== undefined) return compute(a, b)
  const holds = comparison[operator]?.(a, b) ?? fail(`${operator} takes two vectors`)
  return isBool ? Number(holds) : holds ? a : undefined
}

const dropsName = (operator: BinaryOperator, isBool: boolean) => isBool || arithmetic[operator] !== undefined

/** A vector and a number. A comparison keeps the vector's own values. */
const withNumber = (
  operator: BinaryOperator,
  isBool: boolean,
  vector: Vector,
  combine: (value: number) => number | undefined
) =>
  vector.flatMap(({ labels, value }) => {
    const result = combine(value)
    if (result === undefined) return []
    return [
      {
        labels: dropsName(operator, isBool) ? withoutName(labels) : labels,
        value: dropsName(operator, isBool) ? result : value
      }
    ]
  })

const signatureOf = ({ kind, labels }: Matching) => {
  const names = kind === "on" ? labels : [...labels, "__name__"]
  return (of: Labels) => keyOf(kind === "on" ? only(of, names) : without(of, names))
}

const sets = (operator: BinaryOperator, matching: Matching, left: Vector, right: Vector) => {
  const signature = signatureOf(matching)
  const keysOf = (vector: Vector) => new Set(vector.map(({ labels }) => signature(labels)))
  const [inLeft, inRight] = [keysOf(left), keysOf(right)]
  switch (operator) {
    case "and":
      return left.filter(({ labels }) => inRight.has(signature(labels)))
    case "unless":
      return left.filter(({ labels }) => !inRight.has(signature(labels)))
    default:
      return [...left, ...right.filter(({ labels }) => !inLeft.has(signature(labels)))]
  }
}

const pairs = (operator: BinaryOperator, isBool: boolean, matching: Matching, left: Vector, right: Vector): Vector => {
  const signature = signatureOf(matching)
  const [many, one] = matching.many === "right" ? [right, left] : [left, right]
  const ones = new Map<string, Element>()
  for (const element of one) {
    const key = signature(element.labels)
    if (ones.has(key)) return fail(`Several series of one side fit: ${key}`)
    ones.set(key, element)
  }
  const seen = new Set<string>()
  return many.flatMap((element) => {
    const key = signature(element.labels)
    const partner = ones.get(key)
    if (partner === undefined) return []
    const [a, b] = matching.many === "right" ? [partner, element] : [element, partner]
    const value = apply(operator, a.value, b.value, isBool)
    if (matching.many === undefined && seen.has(key)) return fail(`Several series of one side fit: ${key}`)
    seen.add(key)
    if (value === undefined) return []
    const kept = dropsName(operator, isBool) ? withoutName(element.labels) : element.labels
    const labels =
      matching.many !== undefined
        ? { ...without(kept, matching.include), ...only(partner.labels, matching.include) }
        : matching.kind === "on"
          ? only(kept, matching.labels)
          : without(kept, matching.labels)
    return [{ labels, value }]
  })
}

const aggregate: Readonly<Record<Exclude<Aggregation, "topk">, (values: ReadonlyArray<number>) => number>> = {
  sum,
  min: least,
  max: greatest,
  avg: (values) => sum(values) / values.length,
  count: (values) => values.length
}

const groupsOf = ({ kind, labels }: Grouping, vector: Vector) => {
  const groupLabels = (of: Labels) => (kind === "by" ? only(of, labels) : without(of, [...labels, "__name__"]))
  return Object.values(Array.groupBy(vector, (element) => keyOf(groupLabels(element.labels)))).map((elements) => ({
    labels: groupLabels(elements[0].labels),
    elements
  }))
}

/** Buckets of one histogram, by their upper bounds, cumulative. */
const quantile = (q: number, unsorted: ReadonlyArray<{ readonly bound: number; readonly count: number }>) => {
  const buckets: Array<{ readonly bound: number; count: number }> = []
  for (const { bound, count } of unsorted.toSorted((a, b) => a.bound - b.bound)) {
    const last = buckets.at(-1)
    if (last?.bound === bound) last.count += count
    else buckets.push({ bound, count })
  }
  let most = 0
  for (const bucket of buckets) {
    most = Math.max(most, bucket.count)
    bucket.count = most
  }
  const total = buckets.at(-1)
  if (total?.bound !== Infinity || buckets.length < 2 || total.count === 0) return Number.NaN
  const rank = q * total.count
  const index = buckets.findIndex(({ count }) => count >= rank)
  const bucket = buckets[index]
  if (bucket === undefined || bucket.bound === Infinity) return buckets.at(-2)?.bound ?? Number.NaN
  const below = buckets[index - 1]
  if (below === undefined && bucket.bound <= 0) return bucket.bound
  const start = below?.bound ?? 0
  const under = below?.count ?? 0
  return start + (bucket.bound - start) * ((rank - under) / (bucket.count - under))
}

const histogramQuantile = (q: number, vector: Vector): Vector =>
  groupsOf(
    { kind: "without", labels: ["le"] },
    vector.filter(({ labels }) => labels["le"] !== undefined)
  ).map(({ elements, labels }) => ({
    labels,
    value: quantile(
      q,
      elements.map((element) => {
        const bound = element.labels["le"] ?? ""
        return { bound: bound === "+Inf" ? Infinity : Number(bound), count: element.value }
      })
    )
  }))

/** Evaluates over some series. */
const evaluator = (index: Readonly<Record<string, ReadonlyArray<Series>>>, at: number) => {
  const seriesOf = ({ matchers, name }: Selector) =>
    (index[name] ?? []).filter(({ labels }) => matchers.every((matcher) => matches(labels, matcher)))

  const newest = (selector: Selector) =>
    seriesOf(selector).flatMap(({ labels, samples }) => {
      const end = at - selector.offset
      const sample = samples.findLast(({ time }) => time <= end)
      return sample?.value === undefined || sample.time <= end - lookback
        ? []
        : [{ labels, value: sample.value, time: sample.time }]
    })

  const rangesOf = (selector: Selector, seconds: number): ReadonlyArray<Range> => {
    const end = at - selector.offset
    return seriesOf(selector).flatMap(({ labels, samples }) => {
      const points = samples.flatMap(({ time, value }) =>
        value !== undefined && time >= end - seconds && time <= end ? [{ time, value }] : []
      )
      return points.length === 0 ? [] : [{ labels, points }]
    })
  }

  const vectorOf = (expression: Expression | undefined): Vector => {
    const value = expression === undefined ? fail("An argument is missing") : evaluate(expression)
    return typeof value === "number" ? fail("A vector is expected, not a number") : value
  }

  const numberOf = (expression: Expression | undefined): number => {
    const value = expression === undefined ? fail("An argument is missing") : evaluate(expression)
    return typeof value === "number" ? value : fail("A number is expected, not a vector")
  }

  const call = (name: FunctionName, args: ReadonlyArray<Expression>): Vector | number => {
    const [first, second] = args
    const over = overRange[name]
    if (over !== undefined) {
      if (first?._tag !== "Selector" || first.range === undefined) return fail(`${name} takes a range`)
      const seconds = first.range
      const end = at - first.offset
      return rangesOf(first, seconds).flatMap((range) => {
        const value = over(range, seconds, end)
        const labels = name === "last_over_time" ? range.labels : withoutName(range.labels)
        return value === undefined ? [] : [{ labels, value }]
      })
    }
    const each = (change: (value: number) => number) =>
      vectorOf(first).map(({ labels, value }) => ({ labels: withoutName(labels), value: change(value) }))
    switch (name) {
      case "time":
        return at
      case "vector":
        return [{ labels: {}, value: numberOf(first) }]
      case "scalar": {
        const vector = vectorOf(first)
        return vector.length === 1 ? (vector[0]?.value ?? Number.NaN) : Number.NaN
      }
      case "abs":
        return each(Math.abs)
      case "clamp_min": {
        const bound = numberOf(second)
        return each((value) => Math.max(value, bound))
      }
      case "timestamp":
        return first?._tag === "Selector"
          ? newest(first).map(({ labels, time }) => ({ labels: withoutName(labels), value: time }))
          : each(() => at)
      case "absent":
        return vectorOf(first).length > 0 ? [] : [{ labels: first === undefined ? {} : equalsOf(first), value: 1 }]
      case "histogram_quantile":
        return histogramQuantile(numberOf(first), vectorOf(second))
      default:
        return fail(`Not known here: ${name}`)
    }
  }

  const aggregated = (operator: Aggregation, grouping: Grouping, args: ReadonlyArray<Expression>): Vector => {
    if (operator !== "topk") {
      const combine = aggregate[operator]
      return groupsOf(grouping, vectorOf(args[0])).map(({ elements, labels }) => ({
        labels,
        value: combine(elements.map(({ value }) => value))
      }))
    }
    const count = numberOf(args[0])
    return groupsOf(grouping, vectorOf(args[1])).flatMap(({ elements }) =>
      elements.toSorted((a, b) => b.value - a.value).slice(0, count)
    )
  }

  const binary = ({ isBool, left, matching, operator, right }: Extract<Expression, { _tag: "Binary" }>) => {
    const [a, b] = [evaluate(left), evaluate(right)]
    if (typeof a === "number" && typeof b === "number") {
      return apply(operator, a, b, isBool) ?? fail(`${operator} of two numbers needs bool`)
    }
    if (typeof b === "number" && typeof a !== "number") {
      return withNumber(operator, isBool, a, (value) => apply(operator, value, b, isBool))
    }
    if (typeof a === "number" && typeof b !== "number") {
      return withNumber(operator, isBool, b, (value) => apply(operator, a, value, isBool))
    }
    if (typeof a === "number" || typeof b === "number") return fail("Both sides are numbers")
    if (operator === "and" || operator === "or" || operator === "unless") return sets(operator, matching, a, b)
    return pairs(operator, isBool, matching, a, b)
  }

  const evaluate = (expression: Expression): Vector | number => {
    switch (expression._tag) {
      case "Number":
        return expression.value
      case "Selector":
        return expression.range === undefined
          ? newest(expression).map(({ labels, value }) => ({ labels, value }))
          : fail("A range is no result")
      case "Call":
        return call(expression.name, expression.args)
      case "Aggregate":
        return aggregated(expression.operator, expression.grouping, expression.args)
      case "Binary":
        return binary(expression)
    }
  }
  return evaluate
}

/** The labels that the selector of an absent series says it has. */
const equalsOf = (expression: Expression): Labels =>
  expression._tag === "Selector"
    ? Object.fromEntries(
        expression.matchers.filter(({ operator }) => operator === "=").map(({ label, value }) => [label, value])
      )
    : {}

/**
 * Evaluates expressions over the series as they were at a time in seconds. A number counts as an element without labels.
 */
export const make = (series: ReadonlyArray<Series>) => {
  const index = indexOf(series)
  return (expression: Expression, at: number): Result.Result<Vector, QueryError> =>
    Result.try({
      try: () => {
        const value = evaluator(index, at)(expression)
        return typeof value === "number" ? [{ labels: {}, value }] : value
      },
      catch: (error) => (error instanceof QueryError ? error : new QueryError({ message: String(error) }))
    })
}

/** The value of the element with these labels. */
export const valueOf = (vector: Vector, labels: Labels) =>
  Option.map(
    Array.findFirst(vector, (element) => keyOf(element.labels) === keyOf(labels)),
    ({ value }) => value
  )
