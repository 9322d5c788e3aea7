/**
 * A configuration that is wrong stops the start: one line says which variable, and what it should be.
 *
 * @module-tag long
 */
import { createServer } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Client from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import * as Process from "../../support/Process.ts"
import { startUsed } from "../../support/usedFolder.ts"

const secret = "s3cret-passw0rd"
const unreachable = `postgres://someone:${secret}@127.0.0.1:1/nothing`

/** URLs with the scheme of a Postgres, and no host, port or password that could be meant. */
const unusable = [
  `postgres://someone:${secret}@127.0.0.1:99999/db`,
  `postgres://someone:${secret}@[bad/db`,
  `postgres://someone:${secret}%zz@127.0.0.1/db`
]

/** What the variables say together, or the system of them. */
const cases: ReadonlyArray<{ readonly names: string; readonly environment: Process.Environment }> = [
  { names: "HOST", environment: { DATABASE_URL: unreachable, HOST: "203.0.113.7" } },
  { names: "DATABASE_URL", environment: { PROCESSES: "2" } },
  { names: "DATABASE_URL", environment: { DATABASE_URL: unusable[0] ?? "" } },
  { names: "DATA_DIR", environment: { DATA_DIR: "/dev/null/data" } }
]

/** What a failed start must look like to whoever reads it. */
const isReadable = ({ code, signal, output }: Process.End & { readonly output: string }) => {
  assert.isAbove(code ?? 0, 0, `${String(signal)} ${output}`)
  assert.notInclude(output, secret)
  assert.strictEqual(output.trim().split("\n").length, 1, output)
  assert.notMatch(output, /\bat .*:\d+:\d+|node_modules|\[cause\]/)
}

describe.concurrent("A start that fails", () => {
  it.live.each(cases)("ends with a code and one line that names $names: $environment", ({ names, environment }) =>
    Effect.gen(function* () {
      const end = yield* Process.startToEnd(environment)
      isReadable(end)
      assert.include(end.output, names)
    })
  )

  it.live("names the wrong value where it can be no secret, and nothing else", () =>
    Effect.gen(function* () {
      const { output } = yield* Process.startToEnd({ DATABASE_URL: unreachable, DELETION_DELAY: "5" })
      assert.strictEqual(
        output,
        'The configuration is wrong. DELETION_DELAY: expected a duration of at most 366 days, such as 1 minute, got "5"\n'
      )
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

  it.live("because its Postgres is down keeps the password to itself", () =>
    Effect.gen(function* () {
      isReadable(yield* Process.startToEnd({ DATABASE_URL: unreachable, MIGRATE: "true", LOG_FORMAT: "logfmt" }))
    })
  )
})

/** What a program that has started says is open, and what it warns of. */
const saysOpen = (environment: Process.Environment) =>
  Effect.gen(function* () {
    const { address, output } = yield* startUsed({ LOG_FORMAT: "logfmt", ...environment })
    const url = yield* address
    yield* eventually(
      "a line about what is open",
      Effect.sync(() => output().includes("Open to"))
    )
    return { url, open: /Open to [^"]+/.exec(output())?.[0] ?? "", output: output() }
  })

describe.concurrent("A program that has started", () => {
  it.live("listens on loopback on the embedded database unless HOST is set, and says what is open", () =>
    Effect.gen(function* () {
      const local = yield* saysOpen({ HOST: "" })
      assert.match(local.output, /Listening on http:\/\/127\.0\.0\.1:\d+/)
      assert.strictEqual(
        local.open,
        "Open to this machine alone: reads with the public demo API keys; deletions, unsigned unless the organization has a signing secret; health"
      )
      const wide = yield* saysOpen({ HOST: "0.0.0.0", DATABASE_URL: unreachable, ROLES: "data-api" })
      assert.strictEqual(wide.open, "Open to every machine that reaches 0.0.0.0: reads with an API key; health")
      const ofPostgres = yield* saysOpen({ HOST: "", DATABASE_URL: unreachable })
      assert.match(ofPostgres.open, /^Open to every machine that reaches 0\.0\.0\.0: reads with an API key; deletions/)
    })
  )

  it.live.runIf(process.getuid?.() === 0)("warns that it runs as root", () =>
    Effect.gen(function* () {
      const { output } = yield* saysOpen({ DATABASE_URL: unreachable })
      assert.match(output, /level=WARN message="This process runs as root/)
    })
  )
})

describe.concurrent("A program whose Postgres is down", () => {
  it.live("says its address first, answers 503, and logs no password", () =>
    Effect.gen(function* () {
      const { address, output, stdout } = yield* Process.start({ DATABASE_URL: unreachable, LOG_FORMAT: "json" })
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
