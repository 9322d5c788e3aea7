/**
 * The start of the program: an invalid configuration aborts it with one line, and a valid one says its address. Its stop by
 * SIGTERM and SIGINT: serve what is in flight, lose no request, and exit with code 0.
 */
import { existsSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Array, Config, Effect } from "effect"
import { eventually } from "../../support/eventually.ts"
import * as Listening from "../../support/Listening.ts"
import * as Process from "../../support/Process.ts"
import * as Program from "../../support/Program.ts"
import * as Client from "../../support/Client.ts"
import { inTime } from "../../support/inTime.ts"
import { long } from "../../support/tries.ts"

const secret = "s3cret-passw0rd"
const unreachable = `postgres://someone:${secret}@127.0.0.1:1/nothing`

/** A start that failed: an exit code, and one line without a secret or a stack. */
const isReadable = ({ code, output }: Process.End & { readonly output: string }, says: RegExp) => {
  assert.strictEqual(code, 1, output)
  const said = output.replace("Starting on the embedded database\n", "").trim()
  assert.strictEqual(said.split("\n").length, 1, output)
  assert.match(said, says)
  assert.notMatch(output, /\bat .*:\d+:\d+|node_modules|\[cause\]/)
  assert.notInclude(output, secret)
}

describe.concurrent("A start", long, () => {
  it.live.each<readonly [says: RegExp, environment: Process.Environment]>([
    [/HOST/, { DATABASE_URL: unreachable, HOST: "203.0.113.7" }],
    [/DATA_DIR/, { DATA_DIR: "/proc/data/of/it" }],
    [/127\.0\.0\.1:1/, { DATABASE_URL: unreachable, MIGRATE: "true", LOG_FORMAT: "logfmt" }]
  ])("that is invalid ends with code 1 and one line that says %s: %o", ([says, environment]) =>
    Effect.map(Process.startToEnd(environment), (end) => isReadable(end, says))
  )

  it.live.each(["PORT", "OPERATIONS_PORT"])("names %s where the port is in use", (name) =>
    Effect.gen(function* () {
      const port = String((yield* Listening.on(createServer())).port)
      const end = yield* Process.startToEnd({ DATABASE_URL: unreachable, [name]: port })
      isReadable(end, /in use/i)
      for (const word of [name, port]) assert.include(end.output, word)
    })
  )

  it.live("that has a defect ends with code 1, and says which", () =>
    Effect.gen(function* () {
      const broken = "import os from 'node:os'; os.totalmem = () => { throw Error('a defect') }"
      const synced = "import { syncBuiltinESMExports } from 'node:module'; syncBuiltinESMExports()"
      const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(`${broken}; ${synced}`)}`
      const { code, output } = yield* Process.startToEnd({ DATABASE_URL: unreachable, NODE_OPTIONS })
      assert.strictEqual(code, 1, output)
      assert.match(output, /^This is a bug in practice-data: Error: a defect/m)
    })
  )

  it.live("logs its address and database first; without the database it answers 503, without a secret", () =>
    Effect.gen(function* () {
      const environment = { DATABASE_URL: unreachable, LOG_FORMAT: "logfmt", HOST: "" }
      const { client, output, stdout, url } = yield* Program.start(environment)
      const [first = ""] = stdout().split("\n", 1)
      assert.include(first, `${url.replace("127.0.0.1", "0.0.0.0")}, over postgres://127.0.0.1:1/nothing`)
      assert.strictEqual((yield* client.ask("/charges/search")).status, 503)
      assert.notInclude(output(), secret)
      assert.notInclude(output(), "Operators")
    })
  )

  it.live("on demo data has pages with the demo's key, whose examples can be pasted", () =>
    Effect.gen(function* () {
      const { client } = yield* Program.startUsed({})
      for (const path of ["/", "/api/v3/docs"])
        assert.include((yield* client.call({ path, method: "GET" })).text, Client.keys.oakridge, path)
      assert.include((yield* client.call({ path: "/api/v1/docs", method: "GET" })).text, "org_oakridge")
    })
  )
})

// Not concurrent: otherwise the starts above and the stops below would run at the same time.
describe("npm start", long, () => {
  it.live.each([
    ["SIGTERM to npm", "SIGTERM", false],
    ["SIGINT to the process group, as Ctrl-C sends it,", "SIGINT", true]
  ] as const)("%s ends the service and npm with code 0, and leaves the port free", ([, signal, isGroup]) =>
    Effect.gen(function* () {
      // A shell gives npm a process group.
      const npm = yield* Process.startCommand(
        { file: "setsid", args: ["npm", "start"], cwd: Process.root },
        { PATH: yield* Config.String("PATH"), DATABASE_URL: unreachable }
      )
      const { call } = yield* Client.make(yield* npm.address)
      yield* call({ path: "/unknown" })
      process.kill(isGroup ? -npm.pid : npm.pid, signal)
      assert.deepStrictEqual(yield* npm.ended, Program.inOrder)
      assert.isTrue(yield* Effect.isFailure(call({ path: "/unknown" })))
    })
  )
})

const endsInOrder = Effect.fnUntraced(function* (program: Process.Process, most: number, signal?: NodeJS.Signals) {
  const { end, seconds } = yield* Program.stop(program, signal)
  assert.deepStrictEqual(end, Program.inOrder, program.output())
  assert.isBelow(seconds, inTime(most))
})

describe.concurrent("A stop signal", long, () => {
  it.live("ends the first start of an embedded database, and a later one on loopback alone", () =>
    Effect.gen(function* () {
      const DATA_DIR = yield* Process.temporaryFolder
      const first = yield* Process.start({ DATA_DIR })
      yield* eventually("the cluster", () => existsSync(join(DATA_DIR, "postgres")))
      yield* endsInOrder(first, 1)
      const later = yield* Program.startUsed({ HOST: "" })
      assert.strictEqual((yield* later.client.ask("/charges/search")).status, 200)
      assert.match(later.output(), /Listening on http:\/\/127\.0\.0\.1:\d+, over the embedded database in \.data/)
      yield* endsInOrder(later, 10, "SIGINT")
    })
  )
})

const draining = Effect.fnUntraced(function* (drain: string, environment: Process.Environment = {}) {
  const program = yield* Program.start({ DATABASE_URL: unreachable, DRAIN: drain, ...environment })
  yield* program.client.call({ path: "/unknown" })
  return program
})

describe.concurrent("While it drains, a program", long, () => {
  it.live("counts signals within a moment as one, as npm repeats them, and exits at a second one", () =>
    Effect.gen(function* () {
      const once = yield* draining("1 second")
      yield* once.kill("SIGINT")
      yield* endsInOrder(once, 5)
      const twice = yield* draining("10 minutes")
      yield* twice.kill("SIGTERM")
      yield* Effect.sleep("1 second")
      assert.deepStrictEqual((yield* Program.stop(twice)).end, { code: 143, signal: null })
    })
  )

  it.live("loses no request of clients that keep their connections, when it is started again", () =>
    Effect.gen(function* () {
      const first = yield* draining("1 second")
      const client = yield* Client.make(first.url, 16)
      const lost: globalThis.Array<unknown> = []
      let responses = 0
      const ask = client.call({ path: "/unknown" }).pipe(
        Effect.tap(() => Effect.sync(() => (responses += 1))),
        Effect.catchTag("NoAnswer", ({ cause }) =>
          Effect.andThen(
            // Between the end of one and the start of the next, nothing listens.
            Effect.sync(() => String(cause).includes("ECONNREFUSED") || lost.push(cause)),
            Effect.sleep("10 millis")
          )
        )
      )
      yield* Effect.forkScoped(Effect.all(Array.replicate(Effect.forever(ask), 16), { concurrency: 16 }))
      const isAnswering = () => {
        const before = responses
        return eventually("answers", () => responses > before + 100)
      }
      yield* isAnswering()
      yield* endsInOrder(first, 5)
      yield* draining("1 second", { PORT: new URL(first.url).port })
      yield* isAnswering()
      assert.deepStrictEqual(lost, [])
    })
  )
})
