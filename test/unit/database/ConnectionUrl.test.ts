/** The URL of a Postgres is read as libpq reads it; sessions have the timeouts that operators and clients are promised. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Option, Redacted, Result } from "effect"
import { type ConnectionUrl, format, parse } from "../../../src/database/ConnectionUrl.ts"
import { inOrder, sessionSettings } from "../../../src/database/Database.ts"
import { poolsOf } from "../../../src/database/Databases.ts"
import { configsOf, passwordIn } from "../../../src/database/ConnectionTarget.ts"

const read = (text: string, defaults?: Readonly<Record<string, string>>) => {
  const { connectTimeout, hosts, password, ...url } = Result.getOrThrow(parse(text, defaults))
  return {
    ...url,
    hosts: hosts.map(({ host, port }) => `${host} ${port}`),
    password: password && Redacted.value(password),
    connectTimeout: connectTimeout && Duration.toSeconds(connectTimeout)
  }
}

const secret = "s3cret"

describe("the URL of a Postgres", () => {
  const cases: ReadonlyArray<readonly [url: string, has: Partial<ReturnType<typeof read>>]> = [
    ["postgres://db.example.com", { hosts: ["db.example.com 5432"], sslMode: "prefer", ignored: [] }],
    ["postgresql://u:p@[::1]:6000/d", { hosts: ["::1 6000"], user: "u", password: "p", database: "d" }],
    ["postgres://ignored:1/d?host=/run/postgresql,h&port=,2", { hosts: ["/run/postgresql 5432", "h 2"] }],
    ["postgres://%2Frun%2Fpostgresql:6000/d", { hosts: ["/run/postgresql 6000"] }],
    ["postgres://u:p@a:1,b:2/d", { hosts: ["a 1", "b 2"], sessionAttributes: "any" }],
    ["postgres://a,b/d?port=7&target_session_attrs=primary", { hosts: ["a 7", "b 7"], sessionAttributes: "primary" }],
    ["postgres://us%40er:p%2Fw@h/da%20ta", { user: "us@er", password: "p/w", database: "da ta" }],
    ["postgres://u:a@b@h/d", { hosts: ["h 5432"], password: "a@b" }],
    ["postgres://u@h/d?user=v&dbname=e", { user: "v", database: "e" }],
    ["postgres://h?connect_timeout=3&application_name=a", { connectTimeout: 3, applicationName: "a" }],
    ["postgres://h?connect_timeout=0&ssl=true", { connectTimeout: undefined, sslMode: "require" }],
    ["postgres://h?options=-c+x%3Dy&application_name=a+b", { options: "-c x=y", applicationName: "a+b" }],
    ["postgres://h?sslrootcert=system", { sslMode: "verify-full" }],
    ["postgres://h?ssl=true&sslmode=verify-ca", { sslMode: "verify-ca" }],
    ["postgres://h?schema=public&channel_binding=require", { ignored: ["schema", "channel_binding"] }],
    ["postgres://h?pgbouncer=true&sslmode=require&ssl=true", { ignored: [], sharesSessions: true }],
    [`postgres://u@h?${secret}%20${secret}=1`, { ignored: ["(an odd name)"] }]
  ]
  it.each(cases)("%s", (text, has) => assert.deepInclude(read(text), has))

  it("takes from elsewhere what it lacks", () => {
    const url = read("postgres://u@h?sslmode=disable", { sslmode: "require", user: "v", password: "w" })
    assert.deepInclude(url, { user: "u", password: "w", sslMode: "disable" })
    assert.deepInclude(read("postgres://h?ssl=true", { sslmode: "disable" }), { sslMode: "require", ignored: [] })
  })

  it.each([
    [`http://u:${secret}@h/d`, "does not begin with postgres://"],
    [`postgres://u:${secret}@a,,c/d`, "a host is missing"],
    [`postgres://u:${secret}@h:7x/d`, "a port is not"],
    [`postgres://u:${secret}@h:70000/d`, "a port is not"],
    [`postgres://u:${secret}@a,b,c/d?port=1,2`, "not as many ports as hosts"],
    [`postgres://u:${secret}%zz@h/d`, "its percent-encoding"],
    [`postgres://u:${secret}@h/d?sslmode=${secret}`, "sslmode is not one of disable, allow, prefer"],
    [`postgres://u:${secret}@h/d?target_session_attrs=${secret}`, "target_session_attrs is not one of any"],
    [`postgres://u:${secret}@h?connect_timeout=soon`, "connect_timeout"],
    [`postgres://u:${secret}@h?sslmode=require&sslrootcert=system`, "sslrootcert=system needs sslmode=verify-full"],
    [`postgres://u:${secret}@fe80::1/d`, "an IPv6 address stands in brackets"]
  ])("is refused without its secret: %s", (text, reason) => {
    const message = Result.match(parse(text), { onFailure: (found) => found, onSuccess: () => "" })
    assert.include(message, reason)
    assert.notInclude(message, secret)
  })

  it("is shown without its password and parameters", () => {
    const url: ConnectionUrl = Result.getOrThrow(
      parse(`postgres://u:${secret}@a:1,[::1],%2Frun%2Fp/d?sslpassword=${secret}`)
    )
    assert.strictEqual(format(url), "postgres://u@a:1,[::1]:5432,/run/p/.s.PGSQL.5432/d")
  })
})

describe("the password in a file", () => {
  const login = ["h", "5432", "d", "u"]
  const lines = "# h:5432:d:u:no\nh:1:d:u:no\nother:*:*:*:no\nh:*:d:u:first\n*:*:*:*:second\n"
  it.each([
    ["is that of the first line that fits", lines, login, "first"],
    ["may be for any login", lines, ["h", "5432", "d", "v"], "second"],
    ["is in the fifth place", "h:5432:d:u\n", login, undefined],
    ["has backslashes before colons", String.raw`h:5432:d\:x:u:p\:w:x`, ["h", "5432", "d:x", "u"], "p:w"],
    ["has backslashes before backslashes", String.raw`h:5432:d\\:u\\v:p\\`, ["h", "5432", "d\\", "u\\v"], "p\\"]
  ] as const)("%s", (_, text, of, password) => assert.strictEqual(passwordIn(text, of), password))
})

it.effect("the certificate of each of several servers is verified for its own name", () =>
  Effect.gen(function* () {
    const common = { applicationName: "test", connectTimeout: "1 second", startupParameters: {} } as const
    const { of } = yield* configsOf(Redacted.make("postgres://a,b,10.0.0.1/d?sslmode=verify-full"), common)
    const tls = { verification: "host", options: {} } as const
    const names = ["a", "b", "10.0.0.1"].map((host) => of({ host, port: 5432, tls, sendsSettings: true }).ssl)
    assert.deepStrictEqual(names, [
      { host: "a", servername: "a" },
      { host: "b", servername: "b" },
      { host: "10.0.0.1", servername: undefined }
    ])
  })
)

const url = Redacted.make("postgres://localhost")
const none = Option.none()
const settings = { databaseUrl: Option.some(url), readDatabaseUrl: none, credentialsDatabaseUrl: none, dataDir: "" }
const pools = poolsOf({ ...settings, migrate: none, poolSize: 9, roles: [] }, url)

const atMostFiveSeconds = { statement_timeout: "5000", idle_in_transaction_session_timeout: "5000" }

it.each([
  // A lock is given up before the two seconds of a caller are over.
  ["reads", pools.records, { ...atMostFiveSeconds, lock_timeout: "800", ...inOrder }],
  ["keys", pools.credentials, { ...atMostFiveSeconds, lock_timeout: "800" }],
  // A delivery may name ten thousand invoices. The locks of a worker that was killed are freed within a second.
  ["deliveries", pools.tasks, { statement_timeout: "60000", client_connection_check_interval: "500", jit: "off" }]
])("sessions for %s have these timeouts, and end with a lost host", (_, pool, expected) => {
  const lostHost = {
    tcp_keepalives_idle: "10",
    tcp_keepalives_interval: "5",
    tcp_keepalives_count: "3",
    tcp_user_timeout: "20000"
  }
  assert.deepInclude(sessionSettings(pool), { ...expected, ...lostHost, TimeZone: "UTC" })
})
