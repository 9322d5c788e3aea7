/**
 * The program on its embedded database: first start, second start, and sudden death; the access to its folder, whose pages and
 * logs have signing secrets; its thread, its one session, and the commands beside it.
 *
 * @module-tag long
 */
import { chmodSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Array, Duration, Effect } from "effect"
import { Reactivity } from "effect/reactivity"
import * as Embedded from "../../../src/database/Embedded.ts"
import { everything, searchable } from "../../contract/Contract.ts"
import { processWith, runWith } from "../../support/cli.ts"
import * as Client from "../../support/Client.ts"
import { InProcess, key, other, send } from "../../support/inProcess.ts"
import * as Process from "../../support/Process.ts"
import * as Program from "../../support/Program.ts"
import * as Raw from "../../support/Raw.ts"

/** The responses to searches for everything, by both organizations, as a function returns the text of one. */
const everythingBy = <E, R>(ask: (path: string, body: object, key: string) => Effect.Effect<string, E, R>) =>
  Effect.forEach(searchable, (resource) =>
    Effect.forEach([key, other.key], (given) => ask(`/${resource.name}/search`, everything(resource), given))
  )

/** Starts in a folder, answers everything, and is killed. */
const answersFrom = (environment: Process.Environment, folder: string) =>
  Effect.flatMap(Program.start(environment, { folder }), ({ client }) =>
    everythingBy((path, body, given) =>
      Effect.map(Client.patient(client).ask(path, body, given === key ? "oakridge" : "harbor"), ({ status, text }) => {
        assert.strictEqual(status, 200, text)
        return text
      })
    )
  ).pipe(Effect.scoped)

/** The responses of the fakes, which have the same records. */
const demo = everythingBy((path, json, given) =>
  Effect.map(send({ path: `/api/v3${path}`, json, headers: { authorization: `Bearer ${given}` } }), ({ text }) => text)
).pipe(Effect.provide(InProcess.layer()))

const dieAt = join(import.meta.dirname, "dieAt.ts")

describe.concurrent("The program on its embedded database", () => {
  it.live("makes the demo data in .data where DATA_DIR is not set, and finds it at its next start", () =>
    Effect.gen(function* () {
      const folder = yield* Program.usedFolder
      assert.deepStrictEqual(readdirSync(folder), [".data"])
      // Without migrations, an empty database would have no tables to read.
      assert.deepStrictEqual(yield* answersFrom({ MIGRATE: "false" }, folder), yield* demo)
    })
  )

  it.live.each([
    ["half of the cluster was written", ":500"],
    ["the tables were being filled", "insert into charges:20"]
  ] as const)("starts after a kill -9 when, in its very first start, %s", ([, at]) =>
    Effect.gen(function* () {
      const folder = yield* Process.temporaryFolder
      const environment = { DATA_DIR: "data", DIE_AT: at, NODE_OPTIONS: `--import ${dieAt}` }
      const { ended, output } = yield* Process.start(environment, folder)
      assert.strictEqual((yield* ended).signal, "SIGKILL")
      assert.notInclude(output(), "Listening")
      assert.deepStrictEqual(yield* answersFrom({ DATA_DIR: "data" }, folder), yield* demo)
    })
  )
})

const modeOf = (...path: ReadonlyArray<string>) => statSync(join(...path)).mode & 0o777

it.live("The data folder is its owner's alone, and the cluster in it also where it was open", () =>
  Effect.gen(function* () {
    const folder = join(yield* Process.temporaryFolder, ".data")
    const open = Effect.scoped(Embedded.connect(folder))
    yield* open
    assert.strictEqual(modeOf(folder), 0o700)
    yield* Effect.sync(() => chmodSync(join(folder, "postgres"), 0o755))
    yield* open
    assert.strictEqual(modeOf(folder, "postgres"), 0o700)
  }).pipe(Effect.provide([NodeServices.layer, Reactivity.layer]))
)

it.live("A statement leaves the event loop free: for requests, and for a stop signal", () =>
  Effect.gen(function* () {
    const sql = yield* Embedded.connect(join(yield* Program.usedFolder, ".data"))
    const statement = yield* Effect.forkChild(sql`select pg_sleep(3)`, { startImmediately: true })
    const [took] = yield* Effect.timed(Effect.sleep("200 millis"))
    assert.isBelow(Duration.toSeconds(took), 3)
    assert.isUndefined(statement.pollUnsafe())
  }).pipe(Effect.scoped, Effect.provide([NodeServices.layer, Reactivity.layer]))
)

/** Sends a large search and hangs up after some milliseconds. */
const hangUp = (url: string, after: number) =>
  Effect.gen(function* () {
    const connection = yield* Raw.open(url)
    yield* connection.send(Raw.post("/consumption-logs/search", '{"limit":1000}'))
    yield* Effect.sleep(after)
  }).pipe(Effect.scoped)

// A statement that nobody waits for would hold the session.
it.live("Callers that hang up keep no other waiting", () =>
  Effect.gen(function* () {
    const program = yield* Program.startUsed({})
    const { ask } = Client.patient(program.client)
    const search = Effect.map(ask("/charges/search", { limit: 1 }), ({ status }) => assert.strictEqual(status, 200))
    yield* search
    const before = program.output().length
    const hangUps = Array.makeBy(100, (n) => hangUp(program.url, n % 20))
    yield* Effect.all(hangUps, { concurrency: "unbounded", discard: true })
    yield* Effect.all(Array.replicate(search, 8), { concurrency: 8 })
    assert.notInclude(program.output().slice(before), "ERROR")
  })
)

const creating = ["keys", "create", "--organization", "org_oakridge", "--name", "Test"]

it.live("While the service runs, commands and a second service ask to stop it; then they work", () =>
  Effect.gen(function* () {
    const environment = { DATA_DIR: join(yield* Program.usedFolder, ".data") }
    const service = yield* Process.start(environment)
    const client = Client.patient(yield* Client.make(yield* service.address))
    const says = `in ${environment.DATA_DIR} is in use by process ${service.pid}, such as the running service`
    const [refused, second] = yield* Effect.all([runWith(environment, creating), Process.startToEnd(environment)], {
      concurrency: "unbounded"
    })
    assert.strictEqual(refused.code, 1)
    assert.match(refused.stderr, new RegExp(`${says}.+Stop that first`))
    assert.strictEqual(second.code, 1)
    assert.include(second.output, says)
    assert.strictEqual((yield* client.ask("/charges/search")).status, 200)
    yield* Program.kill(service)
    const created = yield* processWith(environment, creating)
    assert.match(created.stdout, /^pda_live_/, created.stderr)
  })
)
