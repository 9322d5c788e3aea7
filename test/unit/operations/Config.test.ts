/** What each variable of the configuration takes, and what it says of anything else. src/operations/README.md: "Configuration". */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Duration, Effect, Option, Redacted } from "effect"
import { config } from "../../../src/operations/Config.ts"
import * as Failure from "../../../src/process/Failure.ts"

const secret = "s3cret-passw0rd"
const long = "x".repeat(10_000)

const read = (environment: Readonly<Record<string, string>>) =>
  Effect.provideService(config, ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: { ...environment } }))

interface Case {
  readonly variable: string
  readonly expected: string
  readonly value: string
}

const wrong = (variable: string, expected: string, values: ReadonlyArray<string>): ReadonlyArray<Case> =>
  values.map((value) => ({ variable, expected, value }))

const notPostgres = [
  [`mysql://someone:${secret}@127.0.0.1/db`, "it does not begin with postgres://"],
  [`postgres//someone:${secret}@127.0.0.1/db`, "it does not begin with postgres://"],
  [`someone:${secret}@127.0.0.1`, "it does not begin with postgres://"],
  ["postgres://", "a host is missing; a Unix socket is named by its folder, as in ?host=/run/postgresql"],
  [`postgres://someone:${secret}@127.0.0.1:99999/db`, "a port is not a number from 1 to 65535"],
  [`postgres://someone:${secret}@[bad/db`, "a host is wrong; an IPv6 address stands in brackets"],
  [`postgres://someone:${secret}%zz@127.0.0.1/db`, "the percent-encoding of the password is wrong"],
  [long, "it does not begin with postgres://"]
] as const

const aUrl = "a URL such as postgres://user:password@host:5432/database"

/** What a variable expects, whose wrong values are named beside it. */
const named: ReadonlyArray<Case> = [
  ...wrong("HOST", "an address to listen on, such as 127.0.0.1", [" ", "127.0.0.1 ", long]),
  ...wrong("PORT", "an integer from 0 to 65535, such as 3000", [
    "abc",
    "1.5",
    "80 ",
    "1e3",
    "0x50",
    "-1",
    "65536",
    "9".repeat(400),
    long
  ]),
  ...wrong("PROCESSES", "an integer from 1 to 256, such as 1", ["0", "257", "many"]),
  ...wrong("MAX_CONNECTIONS", "an integer from 1 to 1000000, such as 2000", ["0", "many"]),
  ...wrong("OPERATIONS_PORT", "an integer from 0 to 65535, such as 9464", ["abc", "65536"]),
  ...wrong("OPERATIONS_HOST", "an address to listen on, such as 127.0.0.1", [" ", long]),
  ...wrong("ACCESS_LOG", "a boolean such as true or false", ["maybe"]),
  ...wrong("METRICS_BY_ORGANIZATION", "a boolean such as true or false", ["some"]),
  ...wrong("DRAIN", "a duration of at most 10 minutes, such as 2 seconds", ["5", "11 minutes", "-1 second"]),
  ...wrong("HEADERS_TIMEOUT", "a duration from 100 millis to 1 hour, such as 10 seconds", ["0 seconds", "2 hours"]),
  ...wrong("BODY_TIMEOUT", "a duration from 100 millis to 1 hour, such as 15 seconds", ["1", "Infinity"]),
  ...wrong("IDLE_TIMEOUT", "a duration from 100 millis to 1 hour, such as 75 seconds", ["0 seconds", "soon"]),
  ...wrong("DATABASE_POOL_SIZE", "an integer from 1 to 1000, such as 10", ["0", "1001", "ten"]),
  ...wrong("DATA_DIR", "a folder such as .data, or memory", [" ", long]),
  ...wrong("ROLES", "any of data-api, intake, worker, separated by commas, such as data-api,intake", [
    "data-api,cook",
    "all",
    "api",
    "Worker",
    " ",
    ",",
    "data-api,",
    long
  ]),
  ...wrong("DELETION_DELAY", "a duration of at most 366 days, such as 1 minute", [
    "5",
    "soon",
    "x minutes",
    "1 fortnight",
    "-1 minute",
    "367 days",
    "Infinity",
    "-Infinity",
    long
  ]),
  ...wrong("TASK_RETENTION", "a duration of at most 36500 days, such as 90 days", [
    "90",
    "-1 minute",
    "Infinity",
    long
  ]),
  ...wrong("REQUIRE_SIGNATURES", "a boolean such as true or false", ["maybe", " "]),
  ...wrong("MIGRATE", "a boolean such as true or false", ["maybe", "constructor", " "]),
  ...wrong("LOG_LEVEL", "All, Fatal, Error, Warn, Info, Debug, Trace or None, such as Debug", ["loud", "5", " ", long]),
  ...wrong("LOG_FORMAT", "pretty, json or logfmt, such as json", ["xml"])
]

const notAnOrigin = [
  "http",
  "stripe",
  "//127.0.0.1",
  "http://",
  "127.0.0.1:12111",
  "localhost:12111",
  "ftp://127.0.0.1",
  "http://127.0.0.1:12111/v1",
  "http://127.0.0.1:12111/?account=1",
  "http://127.0.0.1:12111/#v1",
  `http://someone:${secret}@127.0.0.1:12111`,
  `http://${secret}@127.0.0.1:12111`
]

const notAHeader = [`sk_${secret}ü`, `sk_ ${secret}`, `sk_${secret}\r\nx: y`, " "]

/** What a variable expects, whose wrong values may hold a secret. */
const unnamed: ReadonlyArray<Case> = [
  ...["DATABASE_URL", "READ_DATABASE_URL", "CREDENTIALS_DATABASE_URL"].flatMap((variable) =>
    notPostgres.flatMap(([value, reason]) => wrong(variable, `${aUrl}, but ${reason}`, [value]))
  ),
  ...wrong("STRIPE_API_URL", "a URL of a host and a port alone, such as http://127.0.0.1:12111", notAnOrigin),
  ...wrong("STRIPE_SECRET_KEY", "a key of visible ASCII characters, such as sk_live_...", notAHeader),
  ...wrong("OPERATIONS_TOKEN", "16 to 255 visible ASCII characters, such as those of openssl rand -hex 16", [
    "short",
    `${secret} ${secret}`,
    long
  ])
]

const variables = [...new Set([...named, ...unnamed].map(({ variable }) => variable))]

const complaint = (environment: Readonly<Record<string, string>>) =>
  Effect.map(Effect.flip(read(environment)), Failure.explain)

const shown = (value: string) => JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)

describe("The configuration", () => {
  it.effect.each(named)("expects of $variable $expected, and is given $value", ({ variable, expected, value }) =>
    Effect.gen(function* () {
      assert.strictEqual(
        yield* complaint({ [variable]: value }),
        `The configuration is wrong. ${variable}: expected ${expected}, got ${shown(value)}`
      )
    })
  )

  it.effect.each(unnamed)("expects of $variable $expected, and does not repeat $value", (case_) =>
    Effect.gen(function* () {
      const { variable, expected, value } = case_
      assert.strictEqual(
        yield* complaint({ [variable]: value }),
        `The configuration is wrong. ${variable}: expected ${expected}`
      )
    })
  )

  it.effect("takes a variable that is empty as unset", () =>
    Effect.gen(function* () {
      const empty = variables.map((variable) => [variable, ""])
      assert.deepStrictEqual(yield* read(Object.fromEntries(empty)), yield* read({}))
    })
  )

  it.effect("listens on this machine alone where the keys are public, unless HOST says otherwise", () =>
    Effect.gen(function* () {
      const DATABASE_URL = "postgres://someone@host/db"
      assert.strictEqual((yield* read({})).host, "127.0.0.1")
      assert.strictEqual((yield* read({ DATABASE_URL })).host, "0.0.0.0")
      for (const environment of [{}, { DATABASE_URL }]) {
        assert.strictEqual((yield* read({ ...environment, HOST: "10.0.0.1" })).host, "10.0.0.1")
      }
    })
  )

  it.effect("takes words in any case, and roles with spaces and more than once", () =>
    Effect.gen(function* () {
      const settings = yield* read({
        LOG_LEVEL: "debug",
        LOG_FORMAT: "JSON",
        MIGRATE: "Yes",
        ROLES: "worker, intake,intake",
        DELETION_DELAY: "90 seconds",
        DATABASE_URL: "postgresql://someone@host/db?sslmode=require"
      })
      assert.strictEqual(settings.logLevel, "Debug")
      assert.strictEqual(settings.logFormat, "json")
      assert.isTrue(Option.getOrThrow(settings.migrate))
      assert.deepStrictEqual(settings.roles, ["intake", "worker"])
      assert.strictEqual(Duration.toMillis(settings.deletionDelay), 90_000)
      assert.strictEqual(
        Redacted.value(Option.getOrThrow(settings.databaseUrl)),
        "postgresql://someone@host/db?sslmode=require"
      )
    })
  )
})
