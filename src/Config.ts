/** The configuration: every variable that the service reads, with its default. The README lists the same. */
import { isatty } from "node:tty"
import { Config, Duration, Schema } from "effect"

const roles = ["data-api", "intake", "worker"] as const

const integer = (name: string, range: { readonly minimum: number; readonly maximum: number }) =>
  Config.schema(Schema.Int.check(Schema.isBetween(range)), name)

interface Range {
  readonly minimum: Duration.Duration
  readonly maximum: Duration.Duration
}

const duration = (name: string, { minimum, maximum }: Range) =>
  Config.schema(
    Schema.DurationFromString.check(
      Schema.makeFilter((value) => Duration.between(value, { minimum, maximum }), {
        message: `Expected a duration from ${Duration.format(minimum)} to ${Duration.format(maximum)}, such as "5 seconds"`
      })
    ),
    name
  )

const timeouts: Range = { minimum: Duration.millis(100), maximum: Duration.hours(1) }

const isTerminal = isatty(0) || isatty(1)

// The URL holds a password, so what is wrong with it is said without it.
const isPostgresUrl = (text: string) => {
  try {
    const { protocol, hostname, username, password } = new URL(text)
    decodeURIComponent(username + password)
    return /^postgres(ql)?:$/.test(protocol) && hostname !== ""
  } catch {
    return false
  }
}

const HttpUrl = Schema.URLFromString.check(
  Schema.makeFilter(({ protocol, hostname }) => /^https?:$/.test(protocol) && hostname !== "", {
    message: "Expected a URL such as http://127.0.0.1:12111"
  })
)

const postgresUrl = (name: string) =>
  Config.option(
    Config.schema(
      Schema.RedactedFromValue(
        Schema.String.check(
          Schema.makeFilter(isPostgresUrl, {
            message: "Expected a URL such as postgres://user:password@host:5432/database"
          })
        )
      ),
      name
    )
  )

export const config = Config.all({
  /** The address to listen on. */
  host: Config.NonEmptyString("HOST").pipe(Config.withDefault("0.0.0.0")),
  /** The port to listen on; 0 takes a free one. */
  port: integer("PORT", { minimum: 0, maximum: 65535 }).pipe(Config.withDefault(3000)),
  /**
   * How long everything is still answered after a stop signal. Unset: 2 seconds, or none when started from a terminal,
   * where someone waits for it.
   */
  drain: duration("DRAIN", { minimum: Duration.zero, maximum: Duration.minutes(10) }).pipe(
    Config.withDefault(isTerminal ? Duration.zero : Duration.seconds(2))
  ),
  /** How many connections may be open at once. One more is refused. */
  maxConnections: integer("MAX_CONNECTIONS", { minimum: 1, maximum: 1_000_000 }).pipe(Config.withDefault(2000)),
  /** How long the headers of a request may take to arrive. */
  headersTimeout: duration("HEADERS_TIMEOUT", timeouts).pipe(Config.withDefault(Duration.seconds(10))),
  /** How long a request may take to arrive with its body. */
  bodyTimeout: duration("BODY_TIMEOUT", timeouts).pipe(Config.withDefault(Duration.seconds(15))),
  /** How long a connection may stay open on which nothing happens. */
  idleTimeout: duration("IDLE_TIMEOUT", timeouts).pipe(Config.withDefault(Duration.seconds(75))),
  /** How many processes serve the port; more than one share a Postgres of DATABASE_URL. */
  workers: integer("WORKERS", { minimum: 1, maximum: 256 }).pipe(Config.withDefault(1)),
  /** What this process does: any of data-api, intake and worker, separated by commas. */
  roles: Config.Array(Schema.Literals(roles), "ROLES").pipe(Config.withDefault(roles)),
  /** From receiving an invoice deletion to running it. */
  deletionDelay: Config.Duration("DELETION_DELAY").pipe(Config.withDefault(Duration.minutes(1))),
  /** The Postgres that holds the records. Unset: the embedded database. */
  databaseUrl: postgresUrl("DATABASE_URL"),
  /** A replica of it, from which the data API reads records. Unset: that Postgres itself. */
  readDatabaseUrl: postgresUrl("READ_DATABASE_URL"),
  /** The Postgres that holds the API keys. Unset: the one that holds the records. */
  credentialsDatabaseUrl: postgresUrl("CREDENTIALS_DATABASE_URL"),
  /** How many connections to open to each Postgres at most. */
  poolSize: integer("DATABASE_POOL_SIZE", { minimum: 1, maximum: 1000 }).pipe(Config.withDefault(10)),
  /** The folder of the embedded database, or `memory`. */
  dataDir: Config.NonEmptyString("DATA_DIR").pipe(Config.withDefault(".data")),
  /** The key of the payment processor. Unset: the demo processor on the embedded database, else none. */
  stripeSecretKey: Config.option(Config.Redacted("STRIPE_SECRET_KEY")),
  /** Another address of the payment processor than its own: a double of it. */
  stripeApiUrl: Config.option(Config.schema(HttpUrl, "STRIPE_API_URL")),
  /** Whether to apply missing migrations at start. Unset: only on the embedded database. */
  migrate: Config.option(Config.Boolean("MIGRATE")),
  /** The least severe messages to log. */
  logLevel: Config.LogLevel("LOG_LEVEL").pipe(Config.withDefault("Info")),
  /** How to write log messages. */
  logFormat: Config.Literals(["pretty", "json", "logfmt"], "LOG_FORMAT").pipe(Config.withDefault("pretty"))
})

/** What a process can do. */
export type Role = (typeof roles)[number]

export type Settings = Config.Success<typeof config>
