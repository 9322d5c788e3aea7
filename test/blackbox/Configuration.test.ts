/** A configuration that is wrong stops the start: one line says which variable, and what it should be. */
import { createServer } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Client from "./support/Client.ts"
import * as Process from "./support/Process.ts"

const secret = "s3cret-passw0rd"
const unreachable = `postgres://someone:${secret}@127.0.0.1:1/nothing`

interface Case {
  readonly variable: string
  readonly value: string
  readonly expected: RegExp
  readonly environment?: Process.Environment
}

const wrong = (
  variable: string,
  expected: RegExp,
  values: ReadonlyArray<string>,
  environment: Process.Environment = { DATABASE_URL: unreachable }
): ReadonlyArray<Case> => values.map((value) => ({ variable, value, expected, environment }))

/** URLs with the scheme of a Postgres, and no host, port or password that could be meant. */
const unusable = [
  `postgres://someone:${secret}@127.0.0.1:99999/db`,
  `postgres://someone:${secret}@[bad/db`,
  `postgres://someone:${secret}%zz@127.0.0.1/db`
]

const notPostgres = [
  `mysql://someone:${secret}@127.0.0.1/db`,
  `postgres//someone:${secret}@127.0.0.1/db`,
  `someone:${secret}@127.0.0.1`,
  "postgres://",
  ...unusable
]

const cases: ReadonlyArray<Case> = [
  ...wrong("PORT", /integer|number/i, ["abc", "1.5", "80 "]),
  ...wrong("PORT", /65535/, ["-1", "65536"]),
  ...wrong("HOST", /address/i, ["203.0.113.7"]),
  ...wrong("DATABASE_URL", /postgres:\/\//, notPostgres, {}),
  ...wrong("CREDENTIALS_DATABASE_URL", /postgres:\/\//, notPostgres),
  ...wrong("READ_DATABASE_URL", /postgres:\/\//, notPostgres),
  ...wrong("WORKERS", /integer|number|256/i, ["0", "257", "many"]),
  ...wrong("WORKERS", /DATABASE_URL/, ["2"], {}),
  ...wrong("DATABASE_POOL_SIZE", /integer|number|1000/i, ["0", "1001", "ten"]),
  ...wrong("DATA_DIR", /folder|directory/i, ["/dev/null/data"], {}),
  ...wrong("ROLES", /data-api.*intake.*worker/, ["data-api,cook", "all"]),
  ...wrong("DELETION_DELAY", /duration/i, ["soon", "x minutes"]),
  ...wrong("DRAIN", /duration/i, ["soon", "11 minutes"]),
  ...wrong("MAX_CONNECTIONS", /integer|number|1000000/i, ["0", "many"]),
  ...wrong("HEADERS_TIMEOUT", /duration/i, ["0 seconds", "never"]),
  ...wrong("BODY_TIMEOUT", /duration/i, ["Infinity"]),
  ...wrong("IDLE_TIMEOUT", /duration/i, ["-1 second"]),
  ...wrong("STRIPE_API_URL", /url/i, [
    "stripe",
    "//127.0.0.1",
    "http://",
    "127.0.0.1:12111",
    "localhost:12111",
    "ftp://127.0.0.1"
  ]),
  ...wrong("MIGRATE", /true|boolean/i, ["maybe"]),
  ...wrong("LOG_LEVEL", /Info/, ["loud"]),
  ...wrong("LOG_FORMAT", /pretty.*json.*logfmt/, ["xml"])
]

/** What a failed start must look like to whoever reads it. */
const isReadable = ({ code, signal, output }: Process.End & { readonly output: string }) => {
  assert.isAbove(code ?? 0, 0, `${String(signal)} ${output}`)
  assert.notInclude(output, secret)
  assert.strictEqual(output.trim().split("\n").length, 1, output)
  assert.notMatch(output, /\bat .*:\d+:\d+|node_modules|\[cause\]/)
}

describe.concurrent("A start that fails", () => {
  it.live.each(cases)("$variable=$value ends with a code, the variable's name and what was expected", (wrongly) =>
    Effect.gen(function* () {
      const { variable, value, expected, environment } = wrongly
      const end = yield* Process.startToEnd({ ...environment, [variable]: value })
      isReadable(end)
      assert.include(end.output, variable)
      assert.match(end.output, expected)
    })
  )

  it.live("for a port in use names PORT and the port", () =>
    Effect.gen(function* () {
      const port = yield* Effect.acquireRelease(
        Effect.callback<{ readonly number: number; readonly close: () => void }>((resume) => {
          const server = createServer().listen(0, "127.0.0.1", () => {
            const address = server.address()
            const number = address === null || typeof address === "string" ? 0 : address.port
            resume(Effect.succeed({ number, close: () => server.close() }))
          })
        }),
        ({ close }) => Effect.sync(close)
      )
      const end = yield* Process.startToEnd({ DATABASE_URL: unreachable, PORT: String(port.number) })
      isReadable(end)
      assert.include(end.output, "PORT")
      assert.include(end.output, String(port.number))
      assert.match(end.output, /in use/i)
    })
  )

  it.live.each(["pretty", "json", "logfmt"])(
    "because its Postgres is down keeps the password to itself (%s)",
    (format) =>
      Effect.gen(function* () {
        isReadable(yield* Process.startToEnd({ DATABASE_URL: unreachable, MIGRATE: "true", LOG_FORMAT: format }))
      })
  )
})

describe.concurrent("A program whose Postgres is down", () => {
  it.live.each(["pretty", "json", "logfmt"])(
    "says its address first, answers 503, and logs no password (%s)",
    (format) =>
      Effect.gen(function* () {
        const { address, output, stdout } = yield* Process.start({ DATABASE_URL: unreachable, LOG_FORMAT: format })
        const client = yield* Client.make(yield* address)
        assert.include(stdout().split("\n", 1)[0] ?? "", client.address)
        assert.strictEqual((yield* client.ask("/charges/search")).status, 503)
        assert.notInclude(output(), secret)
      })
  )

  it.live.each(unusable)("logs no password where its URL cannot be used: %s", (url) =>
    Effect.gen(function* () {
      const { address, ended, output } = yield* Process.start({ DATABASE_URL: url })
      const asked = Effect.gen(function* () {
        const client = yield* Client.make(yield* address)
        yield* client.ask("/charges/search")
      })
      yield* Effect.catchTag(asked, "NotListening", () => ended)
      assert.notInclude(output(), secret)
    })
  )
})
