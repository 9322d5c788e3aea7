/** The URL of a Postgres, taken apart as libpq does. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Redacted, Result } from "effect"
import { format, type Host, parse } from "../../../src/database/ConnectionUrl.ts"
import { passwordIn } from "../../../src/database/Endpoint.ts"

const read = (text: string) => Result.getOrThrow(parse(text))

const wrong = (text: string) => {
  const result = parse(text)
  assert.isTrue(Result.isFailure(result), text)
  return Result.isFailure(result) ? result.failure : ""
}

const one = (host: string, port = 5432): readonly [Host] => [{ host, port }]

describe("The URL of a Postgres", () => {
  it("names servers: by name, address and folder of a socket", () => {
    assert.deepStrictEqual(read("postgres://db.example.com").hosts, one("db.example.com"))
    assert.deepStrictEqual(read("postgresql://u:p@[::1]:6000/d").hosts, one("::1", 6000))
    assert.deepStrictEqual(read("postgres:///d?host=/run/postgresql").hosts, one("/run/postgresql"))
    assert.deepStrictEqual(read("postgres://%2Frun%2Fpostgresql:6000/d").hosts, one("/run/postgresql", 6000))
    assert.deepStrictEqual(read("postgres://ignored:1/d?host=h&port=2").hosts, one("h", 2))
  })

  it("names several servers, in their order", () => {
    const both: ReturnType<typeof read>["hosts"] = [
      { host: "a", port: 1 },
      { host: "b", port: 2 }
    ]
    assert.deepStrictEqual(read("postgres://u:p@a:1,b:2/d").hosts, both)
    assert.deepStrictEqual(read("postgres:///d?host=a,b&port=1,2").hosts, both)
    assert.deepStrictEqual(
      read("postgres://a,b/d?port=7").hosts.map(({ port }) => port),
      [7, 7]
    )
    assert.strictEqual(read("postgres://a:1,b/d?target_session_attrs=read-write").sessionAttributes, "read-write")
  })

  it("has what its parts and its parameters say, of which the later one counts", () => {
    const url = read("postgres://us%40er:p%2Fw@h/da%20ta?connect_timeout=3&application_name=a&options=-c%20x%3Dy")
    assert.strictEqual(url.user, "us@er")
    assert.strictEqual(url.password === undefined ? "" : Redacted.value(url.password), "p/w")
    assert.strictEqual(url.database, "da ta")
    assert.deepStrictEqual(url.connectTimeout, Duration.seconds(3))
    assert.strictEqual(url.applicationName, "a")
    assert.strictEqual(url.options, "-c x=y")
    assert.strictEqual(read("postgres://u@h/d?user=v&dbname=e").user, "v")
    assert.strictEqual(read("postgres://u@h/d?user=v&dbname=e").database, "e")
    assert.strictEqual(read("postgres://u:a@b@h/d").hosts[0].host, "h")
    assert.strictEqual(read("postgres://h?options=-c+x%3Dy").options, "-c x=y")
  })

  it("takes what it lacks from elsewhere", () => {
    const defaults = { sslmode: "require", user: "v", password: "w" }
    const url = Result.getOrThrow(parse("postgres://u@h?sslmode=disable", defaults))
    assert.strictEqual(url.user, "u")
    assert.strictEqual(url.sslMode, "disable")
    assert.strictEqual(url.password === undefined ? "" : Redacted.value(url.password), "w")
  })

  it("prefers TLS, and wants the host verified with the authorities of the system", () => {
    assert.strictEqual(read("postgres://h").sslMode, "prefer")
    assert.strictEqual(read("postgres://h?sslrootcert=system").sslMode, "verify-full")
    assert.strictEqual(read("postgres://h?ssl=true").sslMode, "require")
    assert.strictEqual(read("postgres://h?ssl=true&sslmode=verify-ca").sslMode, "verify-ca")
  })

  it("tells which parameters nothing reads, unless they ask for what is so anyway", () => {
    const url = "postgres://h?schema=public&connection_limit=5&gssencmode=disable&keepalives=1&channel_binding=require"
    assert.deepStrictEqual(read(url).ignored, ["schema", "connection_limit", "channel_binding"])
    assert.deepStrictEqual(read("postgres://h?pgbouncer=true&sslmode=require&ssl=true").ignored, [])
    assert.isTrue(read("postgres://h?pgbouncer=true").sharesSessions)
  })

  it("says what is wrong, and nothing of a secret", () => {
    const secret = "s3cret"
    for (const [text, reason] of [
      [`http://u:${secret}@h/d`, "does not begin with postgres://"],
      [`postgres://u:${secret}@/d`, "a host is missing"],
      [`postgres://u:${secret}@h:x/d`, "a port is not"],
      [`postgres://u:${secret}@h:70000/d`, "a port is not"],
      [`postgres://u:${secret}@a,b,c/d?port=1,2`, "not as many ports as hosts"],
      [`postgres://u:${secret}@a,,c/d`, "a host is missing"],
      [`postgres://u:${secret}%zz@h/d`, "the percent-encoding of the password"],
      [`postgres://u:${secret}@h/d?sslmode=${secret}`, "sslmode is not one of disable, allow, prefer"],
      [`postgres://u:${secret}@h/d?target_session_attrs=${secret}`, "target_session_attrs is not one of any"],
      [`postgres://u@h/d?${secret}`, "a parameter lacks its ="],
      [`postgres://u@h/d?password=${secret}%`, "the percent-encoding of the parameter password"],
      [`postgres://u:${secret}@h?connect_timeout=soon`, "connect_timeout"],
      [`postgres://u:${secret}@h?sslmode=require&sslrootcert=system`, "sslrootcert=system needs sslmode=verify-full"],
      [`postgres://u:${secret}@fe80::1/d`, "an IPv6 address stands in brackets"]
    ] as const) {
      assert.include(wrong(text), reason)
      assert.notInclude(wrong(text), secret)
    }
    assert.notInclude(read(`postgres://u@h?${secret}%20${secret}=1`).ignored.join(), secret)
  })

  it("is shown without its password and parameters", () => {
    const url = read("postgres://u:secret@a:1,[::1],%2Frun%2Fp/d?password=secret&sslpassword=secret")
    assert.strictEqual(format(url), "postgres://u@a:1,[::1]:5432,/run/p/.s.PGSQL.5432/d")
  })
})

describe("A file of passwords", () => {
  const login = { host: "h", port: 5432, database: "d", user: "u" }

  it("has the password of the first line that fits", () => {
    const text = "# h:5432:d:u:no\nh:1:d:u:no\nother:*:*:*:no\nh:*:d:u:first\n*:*:*:*:second\n"
    assert.strictEqual(passwordIn(text, login), "first")
    assert.strictEqual(passwordIn(text, { ...login, user: "v" }), "second")
    assert.isUndefined(passwordIn("h:5432:d:u:\nh:5432:d\n", login))
  })

  it("takes the character after a backslash as it is", () => {
    const text = String.raw`h:5432:d\:x:u\\v:pass\:wo:rd\\`
    assert.strictEqual(passwordIn(text, { ...login, database: "d:x", user: "u\\v" }), "pass:wo:rd\\")
  })

  it("knows a socket by its folder, and as localhost", () => {
    const socket = { ...login, host: "/run/postgresql" }
    assert.strictEqual(passwordIn("localhost:*:*:*:a", socket), "a")
    assert.strictEqual(passwordIn("/run/postgresql:*:*:*:b", socket), "b")
  })
})
