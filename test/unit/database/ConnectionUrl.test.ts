/** The URL of a Postgres is read as libpq reads it; sessions have the timeouts that operators and clients are promised. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Option, Redacted, Result } from "effect"
import { connectionOptions, format } from "../../../src/database/ConnectionUrl.ts"
import { inOrder, sessionSettings } from "../../../src/database/Database.ts"
import { poolOptions } from "../../../src/database/Databases.ts"

const read = (text: string) => {
  const { connectTimeout, password, ssl, ...url } = Result.getOrThrow(connectionOptions(text))
  return {
    ...url,
    password: password && Redacted.value(password),
    connectTimeout: connectTimeout && Duration.toSeconds(connectTimeout),
    tls:
      ssl === false
        ? "none"
        : [ssl.rejectUnauthorized ?? "verified", ssl.checkServerIdentity === undefined, ssl.servername].join(" ")
  }
}

const shown = (text: string) => format(Result.getOrThrow(connectionOptions(text)))

const secret = "s3cret"
const here = import.meta.filename

describe("the URL of a Postgres", () => {
  const cases: ReadonlyArray<readonly [url: string, has: Partial<ReturnType<typeof read>>]> = [
    ["postgres://db.example.com", { host: "db.example.com", port: 5432, user: undefined, tls: "none" }],
    ["postgresql://u:p@[::1]:6000/d", { host: "::1", port: 6000, user: "u", password: "p", database: "d" }],
    ["postgres:///d?host=/run/postgresql&port=6000&sslmode=require", { host: "/run/postgresql", tls: "none" }],
    ["postgres://%2Frun%2Fpostgresql:6000/d", { host: "/run/postgresql", port: 6000 }],
    ["postgres://us%40er:p%2Fw@h/da%20ta", { user: "us@er", password: "p/w", database: "da ta" }],
    ["postgres://h?connect_timeout=3&application_name=a", { connectTimeout: 3, applicationName: "a" }],
    ["postgres://h?connect_timeout=0&sslmode=disable", { connectTimeout: undefined, tls: "none" }],
    ["postgres://h?options=-c%20x%3Dy", { options: "-c x=y", isPooled: false }],
    ["postgres://h?pgbouncer=true&sslmode=require", { isPooled: true, tls: "false true h" }],
    ["postgres://h?sslmode=verify-full", { tls: "verified true h" }],
    ["postgres://10.0.0.1?sslmode=verify-full", { tls: "verified true " }]
  ]
  it.each(cases)("%s", (text, has) => assert.deepInclude(read(text), has))

  it.each([
    [`http://u:${secret}@h/d`, "does not begin with postgres://"],
    [`postgres://u:${secret}@/d`, "a host is missing"],
    [`postgres://u:${secret}@h:7x/d`, "not the URL of one host"],
    [`postgres://u:${secret}@h:70000/d`, "not the URL of one host"],
    [`postgres://u:${secret}@a:1,b:2/d`, "not the URL of one host"],
    [`postgres://u:${secret}@a,b/d`, "several hosts"],
    [`postgres://u:${secret}@h/d?host=a,b`, "several hosts"],
    [`postgres://u:${secret}@h/d?sslmode=${secret}`, "sslmode is not one of disable, prefer"],
    [`postgres://u:${secret}@h/d?ssl=${secret}`, "ssl is not true"],
    [`postgres://u:${secret}@h?connect_timeout=soon`, "connect_timeout"],
    [`postgres://u:${secret}@h?sslmode=verify-ca`, "requires specifying a CA with sslrootcert"],
    [`postgres://u:${secret}@h?sslmode=verify-full&sslrootcert=/none.crt`, "ENOENT: no such file or directory"],
    [`postgres://u:${secret}@h?sslmode=verify-full&sslcert=${here}&sslkey=${here}`, "PEM"],
    [`postgres://u:${secret}@fe80::1/d`, "not the URL of one host"]
  ])("is refused without its secret: %s", (text, reason) => {
    const message = Result.match(connectionOptions(text), { onFailure: (found) => found, onSuccess: () => "" })
    assert.include(message, reason)
    assert.notInclude(message, secret)
  })

  it("is shown without its password and parameters", () => {
    assert.strictEqual(shown(`postgres://u:${secret}@[::1]/d?sslpassword=${secret}`), "postgres://u@[::1]:5432/d")
    assert.strictEqual(shown("postgres://%2Frun%2Fp/d"), "postgres:///run/p/.s.PGSQL.5432/d")
  })
})

const url = Redacted.make("postgres://localhost")
const none = Option.none()
const settings = { databaseUrl: Option.some(url), readDatabaseUrl: none, credentialsDatabaseUrl: none, dataDir: "" }
const pools = poolOptions({ ...settings, migrate: none, poolSize: 9, roles: [] }, url)

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
