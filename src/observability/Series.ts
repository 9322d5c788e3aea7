/** The series of the metrics, each with its labels, in the registry of `effect`, which /metrics and OTLP read. */
import { Context, Effect, Metric, type Scope } from "effect"
import { type Definition, type LabelArgument, metrics, type Name, type NameOf } from "./Metrics.ts"

export interface Counter {
  readonly add: (amount?: number) => void
}

export interface Histogram {
  readonly observe: (value: number) => void
}

export interface Gauge {
  /** Sets it to a number, or to a quick function that is called when the metrics are read. Undefined: no series. */
  readonly set: (value: number | (() => number) | undefined) => void
}

/** A gauge outside of any registry. */
export const unseen: Gauge = { set: () => {} }

export interface Series {
  /** The counter of these labels. It is there, at 0, from this call on. */
  readonly counter: <Each extends NameOf<"counter">>(name: Each, ...labels: LabelArgument<Each>) => Counter
  /** The histogram of these labels. It is there, empty, from this call on. */
  readonly histogram: <Each extends NameOf<"histogram">>(name: Each, ...labels: LabelArgument<Each>) => Histogram
  /** The gauge of these labels. There is no series until it is set. */
  readonly gauge: <Each extends NameOf<"gauge">>(name: Each, ...labels: LabelArgument<Each>) => Gauge
  /** A series whose value a quick function computes when the metrics are read, until the scope closes. */
  readonly read: <Each extends NameOf<"counter" | "gauge">>(
    name: Each,
    read: () => number,
    ...labels: LabelArgument<Each>
  ) => Effect.Effect<void, never, Scope.Scope>
}

type Labels = Readonly<Record<string, string>>

/** The options of a metric of `effect`. Its labels are in the order of the list: another order is another series. */
const optionsOf = (name: Name, [labels = {}]: ReadonlyArray<Labels>) => {
  const definition: Definition = metrics[name]
  return {
    description: definition.help,
    attributes: Object.fromEntries(Object.keys(definition.labels).map((label) => [label, labels[label] ?? ""])),
    boundaries: definition.buckets ?? [],
    incremental: true
  }
}

const make = (registry: Metric.MetricRegistry): Series => {
  const context = Context.make(Metric.MetricRegistry, registry)
  const register = <Input, State>(metric: Metric.Metric<Input, State>, get: () => State) =>
    Metric.registerUnsafe(metric, context, { get, update: () => {}, modify: () => {} })

  /** Updates a metric, whose series is there from now on. */
  const updating = <State>(metric: Metric.Metric<number, State>) => {
    metric.valueUnsafe(context)
    return (value: number) => metric.updateUnsafe(value, context)
  }

  return {
    counter: (name, ...labels) => {
      const update = updating(Metric.counter(name, optionsOf(name, labels)))
      return { add: (amount = 1) => update(amount) }
    },
    histogram: (name, ...labels) => ({ observe: updating(Metric.histogram(name, optionsOf(name, labels))) }),
    gauge: (name, ...labels) => {
      const metric = Metric.gauge(name, optionsOf(name, labels))
      return {
        set: (value) => {
          if (value === undefined) Metric.removeUnsafe(metric, context)
          else register(metric, () => ({ value: typeof value === "number" ? value : value() }))
        }
      }
    },
    read: (name, read, ...labels) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.sync(() =>
            metrics[name].kind === "counter"
              ? register(Metric.counter(name, optionsOf(name, labels)), () => ({ count: read(), incremental: true }))
              : register(Metric.gauge(name, optionsOf(name, labels)), () => ({ value: read() }))
          ),
          (registration) => Effect.sync(() => registration.remove())
        )
      )
  }
}

/** The series of the current registry, which is the one of `effect` unless another is provided. */
export const current: Effect.Effect<Series> = Effect.map(Metric.MetricRegistry, make)
