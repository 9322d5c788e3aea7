/** The values that each variable takes, its default, and the complaints about other values. */
import { readFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { ConfigProvider, Duration, Effect, Option, Redacted } from "effect"
import { readSettings } from "../../../src/operations/Settings.ts"
import * as Failure from "../../../src/process/Failure.ts"

const secret = "s3cret-passw0rd"
const long = "x".repeat(10_000)

const read = (environment: Readonly<Record<string, string>>) =>
  Effect.provideService(
    readSettings,
    ConfigProvider.ConfigProvider,
    ConfigProvider.fromEnv({ env: { ...environment } })
  )

type Wrong = readonly [variable: string, expected: string, values: ReadonlyArray<string>, isSecret?: true]

const address = "an address to listen on, such as 127.0.0.1"
const boolean = "a boolean such as true or false"
const timeout = "a duration from 100ms to 1h, such as"
const integers = ["abc", "1.5", "80 ", "1e3", "0x50", "-1", "-0", "65536", long]

const postgres = "a URL such as postgres://user:password@host:5432/database, but it does not begin with postgres://"

const origin = "http://127.0.0.1:12111"
const somebody = `http://someone:${secret}@127.0.0.1:12111`
const notAnOrigin = ["http", "http://", "localhost:12111", "ftp://127.0.0.1", somebody, `${origin}/v1`, `${origin}/#v1`]

const notKeys = [`sk_${secret}ü`, `sk_ ${secret}`, `sk_${secret}\r\nx: y`, " "]
const roles = "any of data-api, intake, worker, separated by commas, such as data-api,intake"

const anEndpoint = "an http or https URL without a password and a query, such as http://127.0.0.1:4318"
const someHeaders = "headers such as x-api-key=secret,x-tenant=1, percent-encoded"

/** Wrong values of a variable of each kind, and what is expected. */
const wrong: ReadonlyArray<Wrong> = [
  ["HOST", address, [" ", "127.0.0.1 ", "'127.0.0.1'", '"::1"', "[::1]", long]],
  ["PORT", "an integer from 0 to 65535, such as 3000", integers],
  ["MAX_CONNECTIONS", "an integer from 1 to 1000000, such as 1000", ["0", "1000001"]],
  ["DRAIN", "a duration of at most 10m, such as 2s", ["5", ".s", "3 s", "3constructor", "11m", "-1s"]],
  ["HEADERS_TIMEOUT", `${timeout} 10s`, ["0 seconds", "2 hours"]],
  ["ROLES", roles, ["data-api,cook", "Worker", " ", "data-api,"]],
  ["DELETION_DELAY", "a duration of at most 366d, such as 1m", ["soon", "1 fortnight", "367 days", "Infinity", long]],
  ["OTEL_EXPORTER_OTLP_ENDPOINT", anEndpoint, ["collector:4318", "/v1", somebody, `${origin}/?token=${secret}`], true],
  ["OTEL_EXPORTER_OTLP_HEADERS", someHeaders, [secret, `a b=${secret}`, `a=${secret}%0d%0ab: c`, "a=%zz"], true],
  ["OTEL_TRACES_SAMPLER_ARG", "a number from 0 to 1, such as 0.01", ["1.1", "-1", "half", " 1"]],
  ["MIGRATE", boolean, ["maybe", "constructor", " "]],
  ["LOG_LEVEL", "All, Fatal, Error, Warn, Info, Debug, Trace or None, such as Debug", ["loud", "5", " ", long]],
  ["LOG_FORMAT", "pretty, json or logfmt, such as json", ["xml"]],
  // `database/ConnectionUrl` has the other complaints.
  ["DATABASE_URL", postgres, [`mysql://someone:${secret}@127.0.0.1/db`, long], true],
  ["STRIPE_API_URL", "a URL with only a host and a port, such as http://127.0.0.1:12111", notAnOrigin, true],
  ["STRIPE_SECRET_KEY", "a key of visible ASCII characters, such as sk_live_...", notKeys, true]
]

const shown = (value: string) => JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)

it.effect.each(wrong)(
  "%s takes %s, and a complaint repeats a value that is no secret",
  ([variable, expected, values, isSecret]) =>
    Effect.gen(function* () {
      for (const value of values) {
        const said = Failure.explain(yield* Effect.flip(read({ [variable]: value })))
        const got = isSecret === true ? "" : `, got ${shown(value)}`
        assert.strictEqual(said, `Invalid configuration. ${variable}: expected ${expected}${got}`)
      }
    })
)

it.effect("an empty variable is unset", () =>
  Effect.gen(function* () {
    const empty = wrong.map(([variable]) => [variable, ""])
    assert.deepStrictEqual(yield* read(Object.fromEntries(empty)), yield* read({}))
  })
)

it.effect.each([
  [{}, "127.0.0.1"],
  [{ DATABASE_URL: "postgres://someone@host/db" }, "0.0.0.0"]
] as const)("the default address is loopback where the keys are public, else any: %j", ([environment, expected]) =>
  Effect.gen(function* () {
    assert.strictEqual((yield* read(environment)).host, expected)
    assert.strictEqual((yield* read({ ...environment, HOST: "fe80::1%eth0" })).host, "fe80::1%eth0")
  })
)

it.effect("words may have any case; roles may have spaces and repeat", () =>
  Effect.gen(function* () {
    const url = "postgresql://someone@host/db?sslmode=require"
    const words = { LOG_LEVEL: "debug", LOG_FORMAT: "JSON", MIGRATE: "Yes", ROLES: "worker, intake,intake" }
    const settings = yield* read({ ...words, DATABASE_URL: url })
    const migrate = Option.some(true)
    assert.deepInclude(settings, { logLevel: "Debug", logFormat: "json", migrate, roles: ["intake", "worker"] })
    assert.strictEqual(Redacted.value(Option.getOrThrow(settings.databaseUrl)), url)
  })
)

it.effect("headers of exports are percent-encoded, and are a secret", () =>
  Effect.gen(function* () {
    const { otlpHeaders } = yield* read({ OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20a=b, x-tenant = 1," })
    assert.deepStrictEqual(Redacted.value(otlpHeaders), { authorization: "Bearer a=b", "x-tenant": "1" })
  })
)

it.effect.each([
  ["intake,worker", true],
  ["worker,data-api", false]
] as const)("the replica is the data API's alone: ROLES=%s", ([ROLES, isNone]) =>
  Effect.map(read({ ROLES, READ_DATABASE_URL: "postgres://replica/db" }), ({ readDatabaseUrl }) =>
    assert.strictEqual(Option.isNone(readDatabaseUrl), isNone)
  )
)

it.effect.each(["3s", "3000ms", "0.05m", "3 seconds", "3000 millis"])("a duration may be %s", (DRAIN) =>
  Effect.map(read({ DRAIN }), ({ drain }) => assert.strictEqual(Duration.toMillis(drain), 3000))
)

it.effect("the operators' guide has the default of each variable", () =>
  Effect.gen(function* () {
    const guide = readFileSync(new URL("../../../src/operations/README.md", import.meta.url), "utf8")
    const rows = [...guide.matchAll(/^\| `((?!OTEL)[A-Z_]+)` +\| `((?![A-Z_]+`)[^`]+)` +\|/gm)]
    assert.isAbove(rows.length, 10)
    const defaults = yield* read({})
    assert.deepInclude(defaults, { drain: Duration.seconds(2), rateLimit: Option.none() })
    for (const [, variable = "", value = ""] of rows)
      assert.deepStrictEqual(yield* read({ [variable]: value }), defaults, variable)
  })
)
