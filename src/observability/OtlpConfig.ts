/** The standard variables of OpenTelemetry for traces, metrics and logs. Without an endpoint nothing is exported. */
import { Config, Option, Record, Redacted } from "effect"
import * as Variable from "../process/Variable.ts"
import { samplers } from "./Tracing.ts"

const signals = { traces: "TRACES", metrics: "METRICS", logs: "LOGS" } as const
export type Signal = keyof typeof signals

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

type Pairs = { readonly [key: string]: string }

/** Pairs as `key=value,key=value`, percent-encoded. */
const pairs = Option.liftThrowable((given: string): Pairs => {
  const parts = given.split(",").filter((part) => part.trim() !== "")
  return Record.fromEntries(
    parts.map((part) => {
      const [, key = "", value = ""] = /^\s*([^=\s][^=]*)=(.*)$/.exec(part) ?? []
      if (key === "") throw new Error("A pair has no key")
      return [decodeURIComponent(key.trim()), decodeURIComponent(value.trim())] as const
    })
  )
})

/** `Headers` throws on what no header can carry. */
const asHeaders = Option.liftThrowable((given: Pairs) => Redacted.make<Pairs>(Object.fromEntries(new Headers(given))))

const headers = (name: string) =>
  Variable.variable(
    name,
    "headers such as x-api-key=secret,x-tenant=1, percent-encoded",
    (given) => Option.getOrUndefined(Option.flatMap(pairs(given), asHeaders)),
    true
  )

const milliseconds = (name: string, example: number) =>
  Variable.integer(name, { minimum: 1, maximum: 3_600_000, example })

/** The variables of all signals, or with a prefix of one signal. */
const exporting = (prefix: string) => {
  const name = (end: string) => `OTEL_EXPORTER_OTLP_${prefix}${end}`
  return {
    endpoint: Config.option(url(name("ENDPOINT"))),
    headers: Config.option(headers(name("HEADERS"))),
    timeout: Config.option(milliseconds(name("TIMEOUT"), 10_000)),
    compression: Config.option(Variable.choice(name("COMPRESSION"), ["gzip", "none"] as const, "gzip")),
    protocol: Config.option(Variable.choice(name("PROTOCOL"), ["http/protobuf", "http/json"] as const, "http/protobuf"))
  }
}

const own = Record.map(signals, (signal) => ({
  ...exporting(`${signal}_`),
  exporter: Config.withDefault(Variable.choice(`OTEL_${signal}_EXPORTER`, ["otlp", "none"], "none"), "otlp")
}))

const temporality = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"

const common = {
  ...exporting(""),
  disabled: Config.withDefault(Variable.boolean("OTEL_SDK_DISABLED"), false),
  serviceName: Config.option(Variable.text("OTEL_SERVICE_NAME", "a name such as practice-data", 255)),
  attributes: Variable.variable(
    "OTEL_RESOURCE_ATTRIBUTES",
    "attributes such as deployment.environment.name=production,region=eu, percent-encoded",
    (given) => Option.getOrUndefined(pairs(given))
  ).pipe(Config.withDefault<Pairs>({})),
  sampler: Config.withDefault(
    Variable.choice("OTEL_TRACES_SAMPLER", samplers, "parentbased_traceidratio"),
    "parentbased_always_on"
  ),
  ratio: Variable.variable("OTEL_TRACES_SAMPLER_ARG", "a number from 0 to 1, such as 0.01", (given) => {
    const value = Number(given)
    return given.trim() === given && value >= 0 && value <= 1 ? value : undefined
  }).pipe(Config.withDefault(1)),
  temporality: Config.withDefault(
    Variable.choice(temporality, ["cumulative", "delta"] as const, "cumulative"),
    "cumulative"
  ),
  metricInterval: Config.withDefault(milliseconds("OTEL_METRIC_EXPORT_INTERVAL", 60_000), 60_000),
  spanDelay: Config.withDefault(milliseconds("OTEL_BSP_SCHEDULE_DELAY", 5000), 5000),
  logDelay: Config.withDefault(milliseconds("OTEL_BLRP_SCHEDULE_DELAY", 1000), 1000)
}

export const variables = [common, ...Object.values(own)].flatMap((group) =>
  Object.values<Config.Config<unknown>>(group)
)

const below = (base: Redacted.Redacted<URL>, signal: Signal) => {
  const endpoint = new URL(Redacted.value(base))
  endpoint.pathname = `${endpoint.pathname.replace(/\/$/, "")}/v1/${signal}`
  return Redacted.make(endpoint)
}

const firstOf = <A>(one: Option.Option<A>, other: Option.Option<A>, byDefault: NoInfer<A>) =>
  Option.getOrElse(Option.firstSomeOf([one, other]), () => byDefault)

/** The exports and their settings; none of a signal that has no endpoint. */
export const config = Config.map(
  Config.all({ common: Config.all(common), own: Config.all(Record.map(own, (settings) => Config.all(settings))) }),
  (read) => ({
    ...read.common,
    ...Record.map(read.own, (one, signal) =>
      Option.firstSomeOf([one.endpoint, Option.map(read.common.endpoint, (base) => below(base, signal))]).pipe(
        Option.filter(() => !read.common.disabled && one.exporter === "otlp"),
        Option.map((target) => ({
          url: target,
          headers: firstOf(one.headers, read.common.headers, Redacted.make({})),
          // The milliseconds that an export may take, with all its tries.
          timeout: firstOf(one.timeout, read.common.timeout, 10_000),
          compression: firstOf(one.compression, read.common.compression, "none"),
          protocol: firstOf(one.protocol, read.common.protocol, "http/protobuf")
        }))
      )
    )
  })
)
export type OtlpSettings = Config.Success<typeof config>
