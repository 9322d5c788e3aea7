/**
 * The start of the program: an invalid configuration aborts it with one line, and a valid one says what is open.
 *
 * @module-tag long
 */
import { existsSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "../../support/eventually.ts"
import * as Listening from "../../support/Listening.ts"
import * as Process from "../../support/Process.ts"
import * as Program from "../../support/Program.ts"

const secret = "s3cret-passw0rd"
const unreachable = `postgres://someone:${secret}@127.0.0.1:1/nothing`

/** Each with what the one line must say. */
const invalid: ReadonlyArray<readonly [says: RegExp, environment: Process.Environment]> = [
  [/HOST/, { DATABASE_URL: unreachable, HOST: "203.0.113.7" }],
  [/DATABASE_URL/, { PROCESSES: "2" }],
  [/DATA_DIR/, { DATA_DIR: "/dev/null/data" }],
  [/127\.0\.0\.1:1/, { DATABASE_URL: unreachable, MIGRATE: "true", LOG_FORMAT: "logfmt" }],
  [/^The configuration is wrong\. DELETION_DELAY: expected/, { DATABASE_URL: unreachable, DELETION_DELAY: "5" }]
]

/** A start that failed: an exit code, and one line without a secret or a stack. */
const isReadable = ({ code, output }: Process.End & { readonly output: string }, says: RegExp) => {
  assert.strictEqual(code, 1, output)
  const said = output.replace("Starting on the embedded database\n", "").trim()
  assert.strictEqual(said.split("\n").length, 1, output)
  assert.match(said, says)
  assert.notMatch(output, /\bat .*:\d+:\d+|node_modules|\[cause\]/)
  assert.notInclude(output, secret)
}

describe.concurrent("An invalid start", () => {
  it.live.each(invalid)("ends with code 1 and one line that says %s: %o", ([says, environment]) =>
    Effect.map(Process.startToEnd(environment), (end) => isReadable(end, says))
  )

  it.live.each(["PORT", "OPERATIONS_PORT"])("names %s where the port is in use, and makes no database", (name) =>
    Effect.gen(function* () {
      const port = String((yield* Listening.on(createServer())).port)
      const DATA_DIR = join(yield* Process.temporaryFolder, "data")
      const end = yield* Process.startToEnd({ DATA_DIR, [name]: port })
      assert.isFalse(existsSync(DATA_DIR))
      isReadable(end, /in use/i)
      for (const word of [name, port]) assert.include(end.output, word)
    })
  )
})

/** The line of a start about its open endpoints. */
const openOf = Effect.fnUntraced(function* (environment: Process.Environment) {
  const program = yield* Program.start({ DATABASE_URL: unreachable, LOG_FORMAT: "logfmt", ...environment })
  yield* eventually("a line about what is open", () => program.output().includes("Open to"))
  return { ...program, open: /Open to [^"]+/.exec(program.output())?.[0] ?? "" }
})

describe("A start without its database", () => {
  it.live(
    "says its address first, what is open to whom, and that it runs as root; it answers 503, without a secret",
    () =>
      Effect.gen(function* () {
        const { client, open, output, stdout, url } = yield* openOf({ HOST: "" })
        assert.include(stdout().split("\n", 1)[0] ?? "", url.replace("127.0.0.1", "0.0.0.0"))
        assert.match(open, /^Open to every machine that reaches 0\.0\.0\.0: reads with an API key; deletions/)
        if (process.getuid?.() === 0) assert.match(output(), /level=WARN message="This process runs as root/)
        assert.strictEqual((yield* client.ask("/charges/search")).status, 503)
        assert.notInclude(output(), secret)
        const ofOneRole = yield* openOf({ HOST: "0.0.0.0", ROLES: "data-api" })
        assert.strictEqual(ofOneRole.open, "Open to every machine that reaches 0.0.0.0: reads with an API key; health")
      })
  )

  it.live("listens on loopback alone on the embedded database", () =>
    Effect.gen(function* () {
      const { output } = yield* Program.startUsed({ HOST: "", LOG_FORMAT: "logfmt" })
      yield* eventually("a line about what is open", () => output().includes("Open to"))
      assert.match(output(), /Listening on http:\/\/127\.0\.0\.1:\d+/)
      assert.include(
        output(),
        "Open to this machine alone: reads with the public demo API keys; deletions, unsigned unless the organization has a signing secret; health"
      )
    })
  )
})
