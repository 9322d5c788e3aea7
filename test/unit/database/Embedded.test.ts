/** The error of an embedded database that does not open: it is damaged only where there was one. */
import { EventEmitter } from "node:events"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import threads from "node:worker_threads"
import { assert, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { Reactivity } from "effect/reactivity"
import * as Embedded from "../../../src/database/Embedded.ts"

/** A thread whose cluster does not open. */
class BrokenThread extends EventEmitter {
  constructor() {
    super()
    setImmediate(() => this.emit("error", new Error("no memory")))
  }
  postMessage() {
    this.emit("exit")
  }
  terminate() {
    return Promise.resolve()
  }
}

const setWorker = (Worker: unknown) => {
  Object.assign(threads, { Worker })
  syncBuiltinESMExports()
}

/** Test files share their modules, so a mock of the module would come too late. */
const breakThreads = Effect.acquireRelease(
  Effect.sync(() => {
    const { Worker } = threads
    setWorker(BrokenThread)
    return Worker
  }),
  (worker) => Effect.sync(() => setWorker(worker))
)

const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "practice-data-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

const messageOf = (folder: string) =>
  Effect.map(
    Effect.flip(Effect.scoped(Embedded.connect(folder))).pipe(Effect.provide([NodeServices.layer, Reactivity.layer])),
    ({ message }) => message
  )

it.live("a database that cannot be made is not damaged, and nothing is to be deleted", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    yield* breakThreads
    assert.strictEqual(
      yield* messageOf(folder),
      `The database in ${folder} cannot be made: no memory. Remove the cause, or choose another folder with DATA_DIR.`
    )
  }).pipe(Effect.scoped)
)

it.live.each([
  ["18\n", /damaged.+Replace the folder by a backup, or delete it/],
  ["", /damaged.+Replace the folder by a backup, or delete it/],
  ["99\n", /was made by Postgres 99.+Start the release that made it/]
] as const)("a database that was made and does not open is damaged, or of another release: %j", ([version, says]) =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    yield* breakThreads
    const file = join(folder, "postgres", "PG_VERSION")
    mkdirSync(join(folder, "postgres"))
    writeFileSync(file, version)
    writeFileSync(join(folder, "made"), "")
    assert.match(yield* messageOf(folder), says)
    assert.strictEqual(readFileSync(file, "utf8"), version)
  }).pipe(Effect.scoped)
)
