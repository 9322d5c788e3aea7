/** The standard variables of OpenTelemetry for traces, metrics and logs. Without an endpoint nothing is exported. */
import { Config, Duration, Option, Redacted } from "effect"
import * as Variable from "../process/Variable.ts"
import { samplers } from "./Tracing.ts"

export const signals = ["traces", "metrics", "logs"] as const
export type Signal = (typeof signals)[number]

const url = (name: string) =>
  Variable.variable(
    name,
    "an http or https URL without a password, such as http://127.0.0.1:4318",
    (given) => {
      const parsed = URL.parse(given)
      return parsed !== null && /^https?:/.test(parsed.href) && parsed.username + parsed.password === ""
        ? Redacted.make(parsed)
        : undefined
    },
    true
  )

const decoded = (text: string) => {
  try {
    return decodeURIComponent(text.trim())
  } catch {
    return undefined
  }
}

/** Pairs as `key=value,key=value`, percent-encoded; undefined if one is malformed. */
const pairs = (isPair: (key: string, value: string) => boolean) => (given: string) => {
  const found: Record<string, string> = {}
  for (const part of given.split(",").filter((each) => each.trim() !== "")) {
    const at = part.indexOf("=")
    const key = decoded(part.slice(0, Math.max(at, 0)))
    const value = decoded(part.slice(at + 1))
    if (key === undefined || value === undefined || key === "" || !isPair(key, value)) return undefined
    found[key] = value
  }
  return found
}

const isHeader = (key: string, value: string) => /^[\w!#$%&'*+.^`|~-]+$/.test(key) && /^[\x20-\x7e]*$/.test(value)

const headers = (name: string) =>
  Variable.variable(
    name,
    "headers such as x-api-key=secret,x-tenant=1, percent-encoded",
    (given) => {
      const found = pairs(isHeader)(given)
      return found === undefined ? undefined : Redacted.make<Readonly<Record<string, string>>>(found)
    },
    true
  )

const protocols = ["http/protobuf", "http/json"] as const
const compressions = ["gzip", "none"] as const

const milliseconds = (name: string, example: number) =>
  Config.map(Variable.integer(name, { minimum: 1, maximum: 3_600_000, example }), Duration.millis)

const count = (name: string, example: number) => Variable.integer(name, { minimum: 1, maximum: 100_000, example })

const ratio = (name: string) =>
  Variable.variable(name, "a number from 0 to 1, such as 0.01", (given) => {
    const value = Number(given)
    return given.trim() === given && value >= 0 && value <= 1 ? value : undefined
  })

/** The variables of all signals, or with a prefix of one signal. */
const exporting = (prefix: "" | `${Uppercase<Signal>}_`) => {
  const name = <End extends string>(end: End) => `OTEL_EXPORTER_OTLP_${prefix}${end}` as const
  return {
    endpoint: Config.option(url(name("ENDPOINT"))),
    headers: Config.option(headers(name("HEADERS"))),
    timeout: Config.option(milliseconds(name("TIMEOUT"), 10_000)),
    compression: Config.option(Variable.choice(name("COMPRESSION"), compressions, "gzip")),
    protocol: Config.option(
      Variable.variable(
        name("PROTOCOL"),
        "http/protobuf or http/json, such as http/protobuf: gRPC is not supported",
        (given) => protocols.find((each) => each === given)
      )
    )
  }
}

const common = {
  ...exporting(""),
  disabled: Variable.boolean("OTEL_SDK_DISABLED").pipe(Config.withDefault(false)),
  serviceName: Variable.text("OTEL_SERVICE_NAME", "a name such as practice-data", 255).pipe(Config.option),
  attributes: Variable.variable(
    "OTEL_RESOURCE_ATTRIBUTES",
    "attributes such as deployment.environment.name=production,region=eu, percent-encoded",
    pairs(() => true)
  ).pipe(Config.withDefault<Readonly<Record<string, string>>>({})),
  sampler: Variable.choice("OTEL_TRACES_SAMPLER", samplers, "parentbased_traceidratio").pipe(
    Config.withDefault("parentbased_always_on")
  ),
  ratio: ratio("OTEL_TRACES_SAMPLER_ARG").pipe(Config.withDefault(1)),
  temporality: Variable.choice(
    "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE",
    ["cumulative", "delta"],
    "cumulative"
  ).pipe(Config.withDefault("cumulative")),
  metricInterval: milliseconds("OTEL_METRIC_EXPORT_INTERVAL", 60_000).pipe(Config.withDefault(Duration.minutes(1))),
  spanDelay: milliseconds("OTEL_BSP_SCHEDULE_DELAY", 5000).pipe(Config.withDefault(Duration.seconds(5))),
  spanQueue: count("OTEL_BSP_MAX_QUEUE_SIZE", 2048).pipe(Config.withDefault(2048)),
  spanBatch: count("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512).pipe(Config.withDefault(512)),
  logDelay: milliseconds("OTEL_BLRP_SCHEDULE_DELAY", 1000).pipe(Config.withDefault(Duration.seconds(1))),
  logQueue: count("OTEL_BLRP_MAX_QUEUE_SIZE", 2048).pipe(Config.withDefault(2048)),
  logBatch: count("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", 512).pipe(Config.withDefault(512))
}

const exporter = (signal: Uppercase<Signal>) =>
  Variable.choice(`OTEL_${signal}_EXPORTER`, ["otlp", "none"], "none").pipe(Config.withDefault("otlp"))

const all = {
  common,
  traces: { ...exporting("TRACES_"), exporter: exporter("TRACES") },
  metrics: { ...exporting("METRICS_"), exporter: exporter("METRICS") },
  logs: { ...exporting("LOGS_"), exporter: exporter("LOGS") }
}

/** Each variable by itself. */
export const variables: ReadonlyArray<Config.Config<unknown>> = Object.values(all).flatMap((group) =>
  Object.values<Config.Config<unknown>>(group)
)

/** The export of one signal. */
export interface Export {
  readonly url: Redacted.Redacted<URL>
  readonly headers: Redacted.Redacted<Readonly<Record<string, string>>>
  /** The most that an export may take, with all its tries. */
  readonly timeout: Duration.Duration
  readonly compression: (typeof compressions)[number]
  readonly protocol: (typeof protocols)[number]
}

const below = (base: Redacted.Redacted<URL>, signal: Signal) => {
  const found = new URL(Redacted.value(base))
  found.pathname = `${found.pathname.replace(/\/$/, "")}/v1/${signal}`
  return Redacted.make(found)
}

/** The exports and their settings; none of a signal that has no endpoint. */
export const config = Config.map(
  Config.all({
    common: Config.all(all.common),
    traces: Config.all(all.traces),
    metrics: Config.all(all.metrics),
    logs: Config.all(all.logs)
  }),
  ({ common: shared, ...own }) => {
    const exportOf = (signal: Signal): Option.Option<Export> => {
      const { compression, endpoint, headers: ownHeaders, exporter: chosen, protocol, timeout } = own[signal]
      if (shared.disabled || chosen === "none") return Option.none()
      const found = Option.orElse(endpoint, () => Option.map(shared.endpoint, (base) => below(base, signal)))
      return Option.map(found, (target) => ({
        url: target,
        headers: Option.getOrElse(Option.firstSomeOf([ownHeaders, shared.headers]), () => Redacted.make({})),
        timeout: Option.getOrElse(Option.firstSomeOf([timeout, shared.timeout]), () => Duration.seconds(10)),
        compression: Option.getOrElse(Option.firstSomeOf([compression, shared.compression]), () => "none" as const),
        protocol: Option.getOrElse(Option.firstSomeOf([protocol, shared.protocol]), () => "http/protobuf" as const)
      }))
    }
    return { ...shared, traces: exportOf("traces"), metrics: exportOf("metrics"), logs: exportOf("logs") }
  }
)
export type OtlpSettings = Config.Success<typeof config>
