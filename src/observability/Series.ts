/** The series of the metrics, each with its labels, in the registry of `effect`, which /metrics and OTLP read. */
import { Context, Effect, Function, Metric } from "effect"
import { type Definition, type LabelArgument, metrics, type Name, type NameOf } from "./Metrics.ts"

interface Gauge {
  /** Sets it to a number. Undefined: no series. */
  readonly set: (value: number | undefined) => void
}

type Labels = Readonly<Record<string, string>>

/** The options of a metric of `effect`. Its labels are in the order of the list: another order is another series. */
const metricOptions = (name: Name, [labels = {}]: ReadonlyArray<Labels>) => {
  const definition: Definition = metrics[name]
  return {
    description: definition.help,
    attributes: Object.fromEntries(Object.keys(definition.labels).map((label) => [label, labels[label] ?? ""])),
    boundaries: definition.buckets ?? [],
    incremental: true
  }
}

const make = (registry: Metric.MetricRegistry) => {
  const context = Context.make(Metric.MetricRegistry, registry)
  const register = <Input, State>(metric: Metric.Metric<Input, State>, get: () => State) =>
    Metric.registerUnsafe(metric, context, { get, update: () => {}, modify: () => {} })

  /** Updates a metric, whose series is there from now on. Its hooks are kept: effect looks them up at each update. */
  const updating = <State>(metric: Metric.Metric<number, State>) => {
    const made: Metric.MetricRegistry = new Map()
    metric.valueUnsafe(Context.make(Metric.MetricRegistry, made))
    const [series] = Array.from(made, ([key, own]) => registry.get(key) ?? registry.set(key, own).get(key))
    return (value: number): void => series?.hooks.update(value, context)
  }

  return {
    /** The counter of these labels. Exposed at 0 from this call on. */
    counter: <Each extends NameOf<"counter">>(name: Each, ...labels: LabelArgument<Each>) => {
      const update = updating(Metric.counter(name, metricOptions(name, labels)))
      return { add: (amount = 1) => update(amount) }
    },
    /** The histogram of these labels. It is there, empty, from this call on. */
    histogram: <Each extends NameOf<"histogram">>(name: Each, ...labels: LabelArgument<Each>) => ({
      observe: updating(Metric.histogram(name, metricOptions(name, labels)))
    }),
    /** The gauge of these labels. There is no series until it is set. */
    gauge: <Each extends NameOf<"gauge">>(name: Each, ...labels: LabelArgument<Each>): Gauge => {
      const metric = Metric.gauge(name, metricOptions(name, labels))
      return {
        set: (value) => {
          if (value === undefined) Metric.removeUnsafe(metric, context)
          else register(metric, () => ({ value }))
        }
      }
    },
    /** A series whose value a quick function computes when the metrics are read, until the scope closes. */
    read: <Each extends NameOf<"counter" | "gauge">>(name: Each, read: () => number, ...labels: LabelArgument<Each>) =>
      Effect.acquireRelease(
        Effect.sync(() =>
          metrics[name].kind === "counter"
            ? register(Metric.counter(name, metricOptions(name, labels)), () => ({ count: read(), incremental: true }))
            : register(Metric.gauge(name, metricOptions(name, labels)), () => ({ value: read() }))
        ),
        (registration) => Effect.sync(() => registration.remove())
      )
  }
}

export type Series = ReturnType<typeof make>

/** The series of the current registry, which is the one of `effect` unless another is provided. */
export const current = Effect.map(Metric.MetricRegistry, Function.memoize(make))
