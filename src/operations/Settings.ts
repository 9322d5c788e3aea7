/** The settings of the service: every variable that it reads, with its values and default. */
import { isatty } from "node:tty"
import { Config, Duration, Effect, LogLevel, Option, Redacted } from "effect"
import * as ConnectionUrl from "../database/ConnectionUrl.ts"
import * as Variable from "../process/Variable.ts"

const roles = ["data-api", "intake", "worker"] as const

const duration = (name: string, range: readonly [Variable.Length, Variable.Length], value: Variable.Length) =>
  Config.withDefault(Variable.duration(name, range, value), Variable.toDuration(value))

const timeout = (name: string, value: Variable.Length) => duration(name, ["100ms", "1h"], value)

const integer = (name: string, range: readonly [number, number], value: number) =>
  Config.withDefault(Variable.integer(name, range, value), value)

const flag = (name: string) => Variable.boolean(name).pipe(Config.withDefault(false))

const secret = (name: string, expected: string, form: RegExp) =>
  Variable.variable(name, expected, (given) => (form.test(given) ? Redacted.make(given) : undefined), true)

/** Pairs as `key=value,key=value`, percent-encoded. `Headers` throws on what no header can carry. */
const readHeaders = Option.liftThrowable((given: string) => {
  const pairs = given.split(",").filter((pair) => pair.trim() !== "")
  const entries = pairs.map((pair): [string, string] => {
    const [, name = "", value = ""] = /^([^=]*)=(.*)$/s.exec(pair) ?? []
    return [decodeURIComponent(name.trim()), decodeURIComponent(value.trim())]
  })
  return Redacted.make<{ readonly [name: string]: string }>(Object.fromEntries(new Headers(entries)))
})

const url = (name: string, expected: string, isAllowed: (given: URL) => boolean) => {
  const read = (given: string) => {
    const parsed = URL.parse(given)
    return parsed !== null && /^https?:/.test(parsed.href) && isAllowed(parsed) ? parsed : undefined
  }
  return Config.option(Variable.variable(name, expected, read, true))
}

const address = (name: string) =>
  Variable.variable(name, "an address to listen on, such as 127.0.0.1", (given) =>
    /^[\w.:%-]{1,255}$/.test(given) ? given : undefined
  )

/** The variable of each setting, its values and its default. src/operations/README.md says what each means. */
export const variables = {
  host: Config.option(address("HOST")),
  port: integer("PORT", [0, 65535], 3000),
  drain: Variable.duration("DRAIN", ["0s", "10m"], "2s").pipe(
    Config.withDefault(isatty(0) || isatty(1) ? Duration.zero : Duration.seconds(2))
  ),
  maxConnections: integer("MAX_CONNECTIONS", [1, 1_000_000], 1000),
  headersTimeout: timeout("HEADERS_TIMEOUT", "10s"),
  bodyTimeout: timeout("BODY_TIMEOUT", "15s"),
  idleTimeout: timeout("IDLE_TIMEOUT", "75s"),
  roles: Variable.choices("ROLES", roles, "data-api,intake").pipe(Config.withDefault(roles)),
  deletionDelay: duration("DELETION_DELAY", ["0s", "366d"], "1m"),
  taskRetention: duration("TASK_RETENTION", ["0s", "36500d"], "90d"),
  requireSignatures: flag("REQUIRE_SIGNATURES"),
  lane: Variable.boolean("LANE").pipe(Config.withDefault(true)),
  databaseUrl: Config.option(ConnectionUrl.variable("DATABASE_URL")),
  readDatabaseUrl: Config.option(ConnectionUrl.variable("READ_DATABASE_URL")),
  credentialsDatabaseUrl: Config.option(ConnectionUrl.variable("CREDENTIALS_DATABASE_URL")),
  // A task holds a connection for as long as it runs, beside which others are started and deliveries stored.
  poolSize: integer("DATABASE_POOL_SIZE", [2, 1000], 10),
  rateLimit: Config.option(Variable.integer("RATE_LIMIT", [1, 1_000_000], 100)),
  dataDir: Variable.text("DATA_DIR", "a folder such as .data, or memory", 4096).pipe(Config.withDefault(".data")),
  stripeSecretKey: Config.option(
    secret("STRIPE_SECRET_KEY", "a key of visible ASCII characters, such as sk_live_...", /^[\x21-\x7e]+$/)
  ),
  // The client takes a host and a port: it would ignore anything more, and a password does not belong in a URL.
  stripeApiUrl: url(
    "STRIPE_API_URL",
    "a URL with only a host and a port, such as http://127.0.0.1:12111",
    ({ href, origin }) => href === `${origin}/`
  ),
  migrate: Config.option(Variable.boolean("MIGRATE")),
  logLevel: Variable.choice("LOG_LEVEL", LogLevel.values, "Debug").pipe(Config.withDefault("Info")),
  logFormat: Variable.choice("LOG_FORMAT", ["pretty", "json", "logfmt"], "json").pipe(Config.withDefault("pretty")),
  accessLog: Config.option(Variable.boolean("ACCESS_LOG")),
  operationsPort: Config.option(Variable.integer("OPERATIONS_PORT", [0, 65535], 9464)),
  operationsHost: address("OPERATIONS_HOST").pipe(Config.withDefault("127.0.0.1")),
  otlpEndpoint: url(
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "an http or https URL without a password and a query, such as http://127.0.0.1:4318",
    ({ href, origin, pathname }) => href === origin + pathname
  ),
  otlpHeaders: Variable.variable(
    "OTEL_EXPORTER_OTLP_HEADERS",
    "headers such as x-api-key=secret,x-tenant=1, percent-encoded",
    (given) => Option.getOrUndefined(readHeaders(given)),
    true
  ).pipe(Config.withDefault(Redacted.make({}))),
  otlpServiceName: Variable.text("OTEL_SERVICE_NAME", "a name such as practice-data", 255).pipe(
    Config.withDefault("practice-data")
  ),
  traceRatio: Variable.variable("OTEL_TRACES_SAMPLER_ARG", "a number from 0 to 1, such as 0.01", (given) => {
    const value = Number(given)
    return given.trim() === given && value >= 0 && value <= 1 ? value : undefined
  }).pipe(Config.withDefault(1))
}

/** The settings. Fails if a variable is wrong. */
export const readSettings = Effect.gen(function* () {
  const { host, readDatabaseUrl, ...settings } = yield* Config.all(variables)
  return {
    ...settings,
    // The other roles read nothing there.
    readDatabaseUrl: settings.roles.includes("data-api") ? readDatabaseUrl : Option.none(),
    host: Option.getOrElse(host, () => (Option.isNone(settings.databaseUrl) ? "127.0.0.1" : "0.0.0.0"))
  }
})

export type Role = (typeof roles)[number]

export type Settings = Effect.Success<typeof readSettings>

/** True of an address to listen on that only this machine reaches. */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host)
