/** The error of an embedded database that does not open: it is damaged only where there was one. */
import { EventEmitter } from "node:events"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { join } from "node:path"
import threads from "node:worker_threads"
import { assert, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { Reactivity } from "effect/reactivity"
import * as Embedded from "../../../src/database/Embedded.ts"
import { temporaryFolder } from "../../support/Process.ts"

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

const setWorker = (Worker: unknown) =>
  Effect.sync(() => {
    Object.assign(threads, { Worker })
    syncBuiltinESMExports()
  })

const damaged = /damaged.+Replace the folder by a backup, or delete it/

it.live.each([
  ["no database, is not damaged", undefined, /cannot be made: no memory. Remove the cause, or choose another folder/],
  ["a database of this release, is damaged", "18\n", damaged],
  ["a database of no release, is damaged", "", damaged],
  ["a database of another release, needs that one", "99\n", /was made by Postgres 99.+Start the release that made it/]
] as const)("a folder that does not open and has %s", ([, version, says]) =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    // Test files share their modules, so a mock of the module would come too late.
    const { Worker } = threads
    yield* Effect.acquireRelease(setWorker(BrokenThread), () => setWorker(Worker))
    const file = join(folder, "postgres", "PG_VERSION")
    if (version !== undefined) {
      mkdirSync(join(folder, "postgres"))
      writeFileSync(file, version)
      writeFileSync(join(folder, "made"), "")
    }
    const { message } = yield* Effect.flip(Embedded.connect(folder))
    assert.match(message, says)
    if (version !== undefined) assert.strictEqual(readFileSync(file, "utf8"), version)
  }).pipe(Effect.provide([NodeServices.layer, Reactivity.layer]))
)

it.live("a folder that is a file, or is in one, is named with what helps", () =>
  Effect.gen(function* () {
    const file = join(yield* temporaryFolder, "file")
    writeFileSync(file, "")
    const itself = yield* Effect.flip(Embedded.connect(file))
    assert.match(itself.message, /^The data folder .+file, cannot be used: .+Check that it is a folder/)
    const within = yield* Effect.flip(Embedded.connect(join(file, "data")))
    assert.match(within.message, /^The data folder of DATA_DIR, .+file.data, cannot be used: /)
  }).pipe(Effect.provide([NodeServices.layer, Reactivity.layer]))
)
