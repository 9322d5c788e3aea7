/** The configuration: every variable that the service reads. src/operations/README.md lists the same. */
import { isatty } from "node:tty"
import { Config, Duration, Effect, LogLevel, Option, Redacted } from "effect"
import * as ConnectionUrl from "../database/ConnectionUrl.ts"
import * as OtlpConfig from "../observability/OtlpConfig.ts"
import * as Variable from "../process/Variable.ts"

const roles = ["data-api", "intake", "worker"] as const

// The client takes a host and a port: it would ignore anything more, and a password does not belong in a URL.
const isOrigin = ({ href, origin, hostname }: URL) =>
  /^https?:/.test(href) && hostname !== "" && [origin, `${origin}/`].includes(href)

const httpOrigin = (name: string) =>
  Variable.variable(
    name,
    "a URL of a host and a port alone, such as http://127.0.0.1:12111",
    (given) => {
      const url = URL.canParse(given) ? new URL(given) : undefined
      return url !== undefined && isOrigin(url) ? url : undefined
    },
    true
  )

const isTerminal = isatty(0) || isatty(1)

type Length = `${number} ${Duration.Unit}`

const duration = (name: string, [minimum, maximum]: readonly [Length | undefined, Length], value: Length) =>
  Variable.duration(name, { ...(minimum !== undefined && { minimum }), maximum, example: value }).pipe(
    Config.withDefault(Duration.fromInputUnsafe(value))
  )

const timeout = (name: string, value: Length) => duration(name, ["100 millis", "1 hour"], value)

const integer = (name: string, [minimum, maximum]: readonly [number, number], value: number) =>
  Variable.integer(name, { minimum, maximum, example: value }).pipe(Config.withDefault(value))

const flag = (name: string) => Variable.boolean(name).pipe(Config.withDefault(false))

const headerText = (name: string) =>
  Variable.variable(
    name,
    "a key of visible ASCII characters, such as sk_live_...",
    (given) => (/^[\x21-\x7e]+$/.test(given) ? Redacted.make(given) : undefined),
    true
  )

/** The settings by their fields: the variable, its values, its default and its meaning. */
export const variables = {
  /** The address to listen on. Unset: any address, or on the embedded database, whose keys are public, loopback. */
  host: Config.option(Variable.text("HOST", "an address to listen on, such as 127.0.0.1", 255)),
  /** The port to listen on; 0 takes a free one. */
  port: integer("PORT", [0, 65535], 3000),
  /** The time after a stop signal in which new requests are served. Unset: 2 seconds, or none on a terminal. */
  drain: Variable.duration("DRAIN", { maximum: "10 minutes", example: "2 seconds" }).pipe(
    Config.withDefault(isTerminal ? Duration.zero : Duration.seconds(2))
  ),
  /** The most connections that may be open at once. */
  maxConnections: integer("MAX_CONNECTIONS", [1, 1_000_000], 2000),
  /** The longest time for the headers of a request to arrive. */
  headersTimeout: timeout("HEADERS_TIMEOUT", "10 seconds"),
  /** The longest time for a request to arrive with its body. */
  bodyTimeout: timeout("BODY_TIMEOUT", "15 seconds"),
  /** The longest time that a connection may be idle. */
  idleTimeout: timeout("IDLE_TIMEOUT", "75 seconds"),
  /** The processes that serve the port. Several need a Postgres of DATABASE_URL. */
  processes: integer("PROCESSES", [1, 256], 1),
  /** The roles of this process. */
  roles: Variable.choices("ROLES", roles, "data-api,intake").pipe(Config.withDefault(roles)),
  /** The time from receiving an invoice deletion to running it. */
  deletionDelay: duration("DELETION_DELAY", [undefined, "366 days"], "1 minute"),
  /** The time for which a completed deletion task keeps its payload. */
  taskRetention: duration("TASK_RETENTION", [undefined, "36500 days"], "90 days"),
  /** True if deliveries of organizations without a signing secret are refused. */
  requireSignatures: flag("REQUIRE_SIGNATURES"),
  /** The Postgres that holds the records. Unset: the embedded database. */
  databaseUrl: Config.option(ConnectionUrl.variable("DATABASE_URL")),
  /** A replica of it, from which the data API reads records. Unset: that Postgres itself. */
  readDatabaseUrl: Config.option(ConnectionUrl.variable("READ_DATABASE_URL")),
  /** The Postgres that holds the API keys. Unset: the one that holds the records. */
  credentialsDatabaseUrl: Config.option(ConnectionUrl.variable("CREDENTIALS_DATABASE_URL")),
  /** The most connections to each Postgres. */
  poolSize: integer("DATABASE_POOL_SIZE", [1, 1000], 10),
  /** The requests of an organization per second to the data API of this process. Unset: no limit. */
  rateLimit: Config.option(Variable.integer("RATE_LIMIT", { minimum: 1, maximum: 1_000_000, example: 100 })),
  /** The folder of the embedded database, or `memory`. */
  dataDir: Variable.text("DATA_DIR", "a folder such as .data, or memory", 4096).pipe(Config.withDefault(".data")),
  /** The key of the payment processor. Unset: the demo processor on the embedded database, else none. */
  stripeSecretKey: Config.option(headerText("STRIPE_SECRET_KEY")),
  /** The address of a double of the payment processor. */
  stripeApiUrl: Config.option(httpOrigin("STRIPE_API_URL")),
  /** Applies missing migrations at start. Unset: only on the embedded database. */
  migrate: Config.option(Variable.boolean("MIGRATE")),
  /** The least severe messages to log. */
  logLevel: Variable.choice("LOG_LEVEL", LogLevel.values, "Debug").pipe(Config.withDefault("Info")),
  /** The format of log messages. */
  logFormat: Variable.choice("LOG_FORMAT", ["pretty", "json", "logfmt"], "json").pipe(Config.withDefault("pretty")),
  /** Logs a line for each request. Unset: where the log is json or logfmt. */
  accessLog: Config.option(Variable.boolean("ACCESS_LOG")),
  /** The port of the operators' listener; 0 takes a free one. Unset: a free one on the embedded database, else none. */
  operationsPort: Config.option(Variable.integer("OPERATIONS_PORT", { minimum: 0, maximum: 65535, example: 9464 })),
  /** The address of the operators' listener. */
  operationsHost: Variable.text("OPERATIONS_HOST", "an address to listen on, such as 127.0.0.1", 255).pipe(
    Config.withDefault("127.0.0.1")
  ),
  /** The token that changes on the operators' page require. Unset: none can be made there. */
  operationsToken: Config.option(
    Variable.variable(
      "OPERATIONS_TOKEN",
      "16 to 255 visible ASCII characters, such as those of openssl rand -hex 16",
      (given) => (/^[\x21-\x7e]{16,255}$/.test(given) ? Redacted.make(given) : undefined),
      true
    )
  ),
  /** Counts requests also by organization, for the first 1,000 of them. */
  metricsByOrganization: flag("METRICS_BY_ORGANIZATION")
}

const all = Config.all({ ...variables, otlp: OtlpConfig.config })

/** The settings. Fails if a variable is wrong, or its name is a slip of one of these. */
export const config = Effect.gen(function* () {
  yield* Variable.refuseSlips(all)
  const { host, ...settings } = yield* all
  return {
    ...settings,
    host: Option.getOrElse(host, () => (Option.isNone(settings.databaseUrl) ? "127.0.0.1" : "0.0.0.0"))
  }
})

/** A role of a process. */
export type Role = (typeof roles)[number]

export type Settings = Effect.Success<typeof config>

/** True of an address to listen on that only this machine reaches. */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host)
