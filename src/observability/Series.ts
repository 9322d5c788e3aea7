/**
 * The series of the metrics, each with its labels, in the registry of `effect`, which /metrics and OTLP read.
 *
 * A series is made once, and is then an object with a number in it: `Metric.update` would look its key up in the registry
 * each time, which a part that runs for each request and each statement cannot afford.
 */
import { Context, Effect, Metric, type Scope } from "effect"
import { type Definition, type LabelArgument, metrics, type Name, type NameOf } from "./Metrics.ts"

/** What only grows. */
export interface Counter {
  readonly add: (amount?: number) => void
}

/** What is measured many times, such as durations. */
export interface Histogram {
  readonly observe: (value: number) => void
}

/** A number that goes up and down. */
export interface Gauge {
  /**
   * Sets it: to a number, or to what is read when the metrics are, which takes microseconds. Undefined: it is not known,
   * and there is no such series.
   */
  readonly set: (value: number | (() => number) | undefined) => void
}

/** A gauge that nobody sees. */
export const unseen: Gauge = { set: () => {} }

/** The series of a registry. */
export interface Series {
  /** The counter of these labels. It is there, at 0, from the first time that it is asked for. */
  readonly counter: <Each extends NameOf<"counter">>(name: Each, ...labels: LabelArgument<Each>) => Counter
  /** The histogram of these labels. */
  readonly histogram: <Each extends NameOf<"histogram">>(name: Each, ...labels: LabelArgument<Each>) => Histogram
  /** The gauge of these labels. There is no series until it is set. */
  readonly gauge: <Each extends NameOf<"gauge">>(name: Each, ...labels: LabelArgument<Each>) => Gauge
  /**
   * A series whose number is read when the metrics are, until the scope closes. `read` takes microseconds. Where there is
   * one of this name and these labels, it is replaced.
   */
  readonly read: <Each extends NameOf<"counter" | "gauge">>(
    name: Each,
    read: () => number,
    ...labels: LabelArgument<Each>
  ) => Effect.Effect<void, never, Scope.Scope>
}

type Labels = Readonly<Record<string, string>>

const ignore = () => {}

const counterOf = (name: Name, attributes: Labels) =>
  Metric.counter(name, { description: metrics[name].help, attributes, incremental: true })

const gaugeOf = (name: Name, attributes: Labels) => Metric.gauge(name, { description: metrics[name].help, attributes })

const histogramState = (boundaries: ReadonlyArray<number>) => {
  const counts = new Float64Array(boundaries.length + 1)
  let [count, sum, min, max] = [0, 0, Number.MAX_VALUE, -Number.MAX_VALUE]
  return {
    observe: (value: number) => {
      // A few comparisons: most values are small, and the lists are short.
      let index = 0
      while (index < boundaries.length && value > (boundaries[index] ?? Infinity)) index++
      counts[index] = (counts[index] ?? 0) + 1
      count += 1
      sum += value
      if (value < min) min = value
      if (value > max) max = value
    },
    get: () => {
      let cumulated = 0
      const buckets = boundaries.map((boundary, index): [number, number] => [
        boundary,
        (cumulated += counts[index] ?? 0)
      ])
      return { buckets, count, sum, min, max }
    }
  }
}

/** Makes each value once for a name and the values of its labels. */
const memoized = <A>(create: (name: Name, attributes: Labels) => A) => {
  const known = new Map<string, A>()
  return (name: Name, labels: Labels = {}): A => {
    const attributes = Object.fromEntries(
      Object.keys(metrics[name].labels).map((label) => [label, labels[label] ?? ""])
    )
    const key = JSON.stringify([name, ...Object.values(attributes)])
    const value = known.get(key) ?? create(name, attributes)
    known.set(key, value)
    return value
  }
}

const make = (registry: Metric.MetricRegistry): Series => {
  const context = Context.make(Metric.MetricRegistry, registry)
  const register = <Input, State>(metric: Metric.Metric<Input, State>, get: () => State) =>
    Metric.registerUnsafe(metric, context, { get, update: ignore, modify: ignore })

  const counter = memoized((name, attributes): Counter => {
    let count = 0
    register(counterOf(name, attributes), () => ({ count, incremental: true }))
    return {
      add: (amount = 1) => {
        count += amount
      }
    }
  })

  const histogram = memoized((name, attributes): Histogram => {
    const definition: Definition = metrics[name]
    const boundaries = definition.buckets ?? []
    const { get, observe } = histogramState(boundaries)
    register(Metric.histogram(name, { description: definition.help, attributes, boundaries }), get)
    return { observe }
  })

  const gauge = memoized((name, attributes): Gauge => {
    const metric = gaugeOf(name, attributes)
    let registration: Metric.Registration | undefined
    let known: number | (() => number) = 0
    return {
      set: (value) => {
        if (value === undefined) {
          registration?.remove()
          registration = undefined
        } else {
          known = value
          registration ??= register(metric, () => ({ value: typeof known === "number" ? known : known() }))
        }
      }
    }
  })

  return {
    counter,
    histogram,
    gauge,
    read: (name, read, ...given) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.sync(() => {
            const [labels = {}]: ReadonlyArray<Labels> = given
            return metrics[name].kind === "counter"
              ? register(counterOf(name, labels), () => ({ count: read(), incremental: true }))
              : register(gaugeOf(name, labels), () => ({ value: read() }))
          }),
          (registration) => Effect.sync(() => registration.remove())
        )
      )
  }
}

const made = new WeakMap<Metric.MetricRegistry, Series>()

/** The series of a registry: always the same ones. */
export const of = (registry: Metric.MetricRegistry): Series => {
  const series = made.get(registry) ?? make(registry)
  made.set(registry, series)
  return series
}

/** The series of the registry around, which is the one of `effect` unless another is provided. */
export const current: Effect.Effect<Series> = Effect.map(Metric.MetricRegistry, of)
