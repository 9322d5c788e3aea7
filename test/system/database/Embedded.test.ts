/**
 * The embedded database: the access to its folder, whose pages and logs have signing secrets, its thread and its one session.
 *
 * @module-tag long
 */
import { chmodSync, statSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Array, Duration, Effect } from "effect"
import { Reactivity } from "effect/reactivity"
import * as Embedded from "../../../src/database/Embedded.ts"
import * as Client from "../../support/Client.ts"
import { temporaryFolder } from "../../support/Process.ts"
import * as Program from "../../support/Program.ts"
import * as Raw from "../../support/Raw.ts"

const modeOf = (...path: ReadonlyArray<string>) => statSync(join(...path)).mode & 0o777

it.live("The data folder is its owner's alone, and the cluster in it also where it was open", () =>
  Effect.gen(function* () {
    const folder = join(yield* temporaryFolder, ".data")
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
    const { send } = yield* Raw.open(url)
    yield* send(Raw.post("/consumption-logs/search", '{"limit":1000}'))
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
