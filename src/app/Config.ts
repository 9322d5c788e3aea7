/** The configuration: every variable that the service reads, with its default. scripts/operations/README.md lists the same. */
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

const timeout = (name: string, example: `${number} ${Duration.Unit}`) =>
  Variable.duration(name, { minimum: "100 millis", maximum: "1 hour", example }).pipe(
    Config.withDefault(Duration.fromInputUnsafe(example))
  )

const headerText = (name: string) =>
  Variable.variable(
    name,
    "a key of visible ASCII characters, such as sk_live_...",
    (given) => (/^[\x21-\x7e]+$/.test(given) ? Redacted.make(given) : undefined),
    true
  )

/** The variables, by their fields in the settings. */
export const variables = {
  /** The address to listen on. Unset: any address, or on the embedded database, whose keys are public, loopback. */
  host: Config.option(Variable.text("HOST", "an address to listen on, such as 127.0.0.1", 255)),
  /** The port to listen on; 0 takes a free one. */
  port: Variable.integer("PORT", { minimum: 0, maximum: 65535, example: 3000 }).pipe(Config.withDefault(3000)),
  /**
   * How long requests are still served after a stop signal. Unset: 2 seconds, or none when started from a terminal,
   * where someone waits for it.
   */
  drain: Variable.duration("DRAIN", { maximum: "10 minutes", example: "2 seconds" }).pipe(
    Config.withDefault(isTerminal ? Duration.zero : Duration.seconds(2))
  ),
  /** How many connections may be open at once. One more is refused. */
  maxConnections: Variable.integer("MAX_CONNECTIONS", { minimum: 1, maximum: 1_000_000, example: 2000 }).pipe(
    Config.withDefault(2000)
  ),
  /** How long the headers of a request may take to arrive. */
  headersTimeout: timeout("HEADERS_TIMEOUT", "10 seconds"),
  /** How long a request may take to arrive with its body. */
  bodyTimeout: timeout("BODY_TIMEOUT", "15 seconds"),
  /** How long a connection may stay open on which nothing happens. */
  idleTimeout: timeout("IDLE_TIMEOUT", "75 seconds"),
  /** How many processes serve the port; more than one share a Postgres of DATABASE_URL. */
  processes: Variable.integer("PROCESSES", { minimum: 1, maximum: 256 }).pipe(Config.withDefault(1)),
  /** What this process does: any of data-api, intake and worker, separated by commas. */
  roles: Variable.choices("ROLES", roles, "data-api,intake").pipe(Config.withDefault(roles)),
  /** From receiving an invoice deletion to running it. */
  deletionDelay: Variable.duration("DELETION_DELAY", { maximum: "366 days", example: "1 minute" }).pipe(
    Config.withDefault(Duration.minutes(1))
  ),
  /** For how long a completed deletion task keeps its payload. */
  taskRetention: Variable.duration("TASK_RETENTION", { maximum: "36500 days", example: "90 days" }).pipe(
    Config.withDefault(Duration.days(90))
  ),
  /** True if deliveries of organizations without a signing secret are refused. */
  requireSignatures: Variable.boolean("REQUIRE_SIGNATURES").pipe(Config.withDefault(false)),
  /** The Postgres that holds the records. Unset: the embedded database. */
  databaseUrl: Config.option(ConnectionUrl.variable("DATABASE_URL")),
  /** A replica of it, from which the data API reads records. Unset: that Postgres itself. */
  readDatabaseUrl: Config.option(ConnectionUrl.variable("READ_DATABASE_URL")),
  /** The Postgres that holds the API keys. Unset: the one that holds the records. */
  credentialsDatabaseUrl: Config.option(ConnectionUrl.variable("CREDENTIALS_DATABASE_URL")),
  /** How many connections to open to each Postgres at most. */
  poolSize: Variable.integer("DATABASE_POOL_SIZE", { minimum: 1, maximum: 1000, example: 10 }).pipe(
    Config.withDefault(10)
  ),
  /** How many requests an organization may send each second to the data API of this process. Unset: no limit. */
  rateLimit: Config.option(Variable.integer("RATE_LIMIT", { minimum: 1, maximum: 1_000_000, example: 100 })),
  /** The folder of the embedded database, or `memory`. */
  dataDir: Variable.text("DATA_DIR", "a folder such as .data, or memory", 4096).pipe(Config.withDefault(".data")),
  /** The key of the payment processor. Unset: the demo processor on the embedded database, else none. */
  stripeSecretKey: Config.option(headerText("STRIPE_SECRET_KEY")),
  /** Another address of the payment processor than its own: a double of it. */
  stripeApiUrl: Config.option(httpOrigin("STRIPE_API_URL")),
  /** Whether to apply missing migrations at start. Unset: only on the embedded database. */
  migrate: Config.option(Variable.boolean("MIGRATE")),
  /** The least severe messages to log. */
  logLevel: Variable.choice("LOG_LEVEL", LogLevel.values, "Debug").pipe(Config.withDefault("Info")),
  /** How to write log messages. */
  logFormat: Variable.choice("LOG_FORMAT", ["pretty", "json", "logfmt"], "json").pipe(Config.withDefault("pretty")),
  /** Whether to log a line for each request. Unset: where the log is json or logfmt. */
  accessLog: Config.option(Variable.boolean("ACCESS_LOG")),
  /**
   * The port of the operators' listener, which has metrics, health and the operators' page; 0 takes a free one. Unset:
   * a free one on the embedded database, otherwise there is no listener.
   */
  operationsPort: Config.option(Variable.integer("OPERATIONS_PORT", { minimum: 0, maximum: 65535, example: 9464 })),
  /** The address of the operators' listener. */
  operationsHost: Variable.text("OPERATIONS_HOST", "an address to listen on, such as 127.0.0.1", 255).pipe(
    Config.withDefault("127.0.0.1")
  ),
  /** What operators show to change something on their page. Unset: nothing can be changed there. */
  operationsToken: Config.option(
    Variable.variable(
      "OPERATIONS_TOKEN",
      "16 to 255 visible ASCII characters, such as those of openssl rand -hex 16",
      (given) => (/^[\x21-\x7e]{16,255}$/.test(given) ? Redacted.make(given) : undefined),
      true
    )
  ),
  /** Whether requests are also counted by organization, of which the first 1,000 are told apart. */
  metricsByOrganization: Variable.boolean("METRICS_BY_ORGANIZATION").pipe(Config.withDefault(false))
}

const all = Config.all({ ...variables, otlp: OtlpConfig.config })

/** The settings. Fails where a variable is wrong, or one is set that is a slip of one of these. */
export const config = Effect.gen(function* () {
  yield* Variable.refuseSlips(all)
  const { host, ...settings } = yield* all
  return {
    ...settings,
    host: Option.getOrElse(host, () => (Option.isNone(settings.databaseUrl) ? "127.0.0.1" : "0.0.0.0"))
  }
})

/** What a process can do. */
export type Role = (typeof roles)[number]

export type Settings = Effect.Success<typeof config>
