/** The configuration: every variable that the service reads, with its default. The README lists the same. */
import { Config, Duration, Schema } from "effect"

const roles = ["data-api", "intake", "worker"] as const

const integer = (name: string, range: { readonly minimum: number; readonly maximum: number }) =>
  Config.schema(Schema.Int.check(Schema.isBetween(range)), name)

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
  /** How many requests an organization may send each second to the data API of this process. Unset: no limit. */
  rateLimit: Config.option(integer("RATE_LIMIT", { minimum: 1, maximum: 1_000_000 })),
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
