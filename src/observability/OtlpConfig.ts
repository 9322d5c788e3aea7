/**
 * Where traces, metrics and logs go, by the standard variables of OpenTelemetry. Nothing goes anywhere unless an endpoint
 * is set.
 */
import { Config, Duration, Option, Redacted } from "effect"
import * as Variable from "../process/Variable.ts"
import { samplers } from "./Tracing.ts"

/** What is exported. */
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

/** Pairs as `key=value,key=value`, percent-encoded; undefined where a pair is not one. */
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

const protocol = (name: string) =>
  Variable.variable(name, "http/protobuf or http/json, such as http/protobuf: gRPC is not supported", (given) =>
    protocols.find((each) => each === given)
  )

const compression = (name: string) => Variable.choice(name, ["gzip", "none"], "gzip")

const milliseconds = (name: string, example: number) =>
  Config.map(Variable.integer(name, { minimum: 1, maximum: 3_600_000, example }), Duration.millis)

const count = (name: string, example: number) => Variable.integer(name, { minimum: 1, maximum: 100_000, example })

const ratio = (name: string) =>
  Variable.variable(name, "a number from 0 to 1, such as 0.01", (given) => {
    const value = Number(given)
    return given.trim() === given && value >= 0 && value <= 1 ? value : undefined
  })

const common = {
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
  endpoint: Config.option(url("OTEL_EXPORTER_OTLP_ENDPOINT")),
  headers: Config.option(headers("OTEL_EXPORTER_OTLP_HEADERS")),
  timeout: Config.option(milliseconds("OTEL_EXPORTER_OTLP_TIMEOUT", 10_000)),
  compression: Config.option(compression("OTEL_EXPORTER_OTLP_COMPRESSION")),
  protocol: Config.option(protocol("OTEL_EXPORTER_OTLP_PROTOCOL")),
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

const ofSignal = (signal: Signal) => {
  const name = signal.toUpperCase()
  return {
    exporter: Variable.choice(`OTEL_${name}_EXPORTER`, ["otlp", "none"], "none").pipe(Config.withDefault("otlp")),
    endpoint: Config.option(url(`OTEL_EXPORTER_OTLP_${name}_ENDPOINT`)),
    headers: Config.option(headers(`OTEL_EXPORTER_OTLP_${name}_HEADERS`)),
    timeout: Config.option(milliseconds(`OTEL_EXPORTER_OTLP_${name}_TIMEOUT`, 10_000)),
    compression: Config.option(compression(`OTEL_EXPORTER_OTLP_${name}_COMPRESSION`)),
    protocol: Config.option(protocol(`OTEL_EXPORTER_OTLP_${name}_PROTOCOL`))
  }
}

const bySignal = { traces: ofSignal("traces"), metrics: ofSignal("metrics"), logs: ofSignal("logs") }

/** Each variable by itself. */
export const variables: ReadonlyArray<Config.Config<unknown>> = [
  ...Object.values(common),
  ...signals.flatMap((signal) => Object.values<Config.Config<unknown>>(bySignal[signal]))
]

const all = Config.all({
  common: Config.all(common),
  traces: Config.all(bySignal.traces),
  metrics: Config.all(bySignal.metrics),
  logs: Config.all(bySignal.logs)
})
type All = Config.Success<typeof all>

/** How one signal is exported. */
export interface Export {
  readonly url: Redacted.Redacted<URL>
  readonly headers: Redacted.Redacted<Readonly<Record<string, string>>>
  /** How long an export may take, with all its tries. */
  readonly timeout: Duration.Duration
  readonly compression: "gzip" | "none"
  readonly protocol: (typeof protocols)[number]
}

const below = (base: Redacted.Redacted<URL>, signal: Signal) => {
  const found = new URL(Redacted.value(base))
  found.pathname = `${found.pathname.replace(/\/$/, "")}/v1/${signal}`
  return Redacted.make(found)
}

const exportOf = ({ common: shared, ...each }: All, signal: Signal): Option.Option<Export> => {
  const own = each[signal]
  if (shared.disabled || own.exporter === "none") return Option.none()
  return Option.map(
    Option.orElse(own.endpoint, () => Option.map(shared.endpoint, (base) => below(base, signal))),
    (found) => ({
      url: found,
      headers: Option.getOrElse(Option.firstSomeOf([own.headers, shared.headers]), () => Redacted.make({})),
      timeout: Option.getOrElse(Option.firstSomeOf([own.timeout, shared.timeout]), () => Duration.seconds(10)),
      compression: Option.getOrElse(Option.firstSomeOf([own.compression, shared.compression]), () => "none" as const),
      protocol: Option.getOrElse(Option.firstSomeOf([own.protocol, shared.protocol]), () => "http/protobuf" as const)
    })
  )
}

/** What is exported, and where to; nothing of a signal whose export is not set up. */
export const config = Config.map(all, (found) => ({
  ...found.common,
  traces: exportOf(found, "traces"),
  metrics: exportOf(found, "metrics"),
  logs: exportOf(found, "logs")
}))
export type OtlpSettings = Config.Success<typeof config>
