/**
 * The access to the folder of the embedded database: its pages and logs have signing secrets.
 *
 * @module-tag long
 */
import { chmodSync, mkdirSync, renameSync, statSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Effect, Layer, Logger } from "effect"
import { Reactivity } from "effect/reactivity"
import * as Embedded from "../../../src/database/Embedded.ts"
import { temporaryFolder } from "../../support/Process.ts"

const modeOf = (...path: ReadonlyArray<string>) => statSync(join(...path)).mode & 0o777

/** Opens the database and closes it again. Returns what was logged. */
const opened = (folder: string) =>
  Effect.gen(function* () {
    const logged: Array<string> = []
    const logger = Logger.layer([Logger.make(({ message }) => void logged.push(String(message)))])
    yield* Embedded.connect(folder).pipe(
      Effect.scoped,
      Effect.provide(Layer.mergeAll(NodeServices.layer, Reactivity.layer, logger))
    )
    return logged
  })

it.live("The data folder is its owner's alone, and an open one is closed once", () =>
  Effect.gen(function* () {
    const folder = join(yield* temporaryFolder, "above", ".data")
    assert.deepStrictEqual(yield* opened(folder), [])
    assert.strictEqual(modeOf(folder), 0o700)
    yield* Effect.sync(() => {
      chmodSync(folder, 0o755)
      chmodSync(join(folder, "postgres"), 0o755)
    })
    const [said = "", ...others] = yield* opened(folder)
    assert.include(said, folder)
    assert.lengthOf(others, 0)
    assert.strictEqual(modeOf(folder), 0o700)
    assert.strictEqual(modeOf(folder, "postgres"), 0o700)
    assert.deepStrictEqual(yield* opened(folder), [])
  }).pipe(Effect.scoped)
)

it.live("A folder that has something else in it stays as open as it is; what is ours in it does not", () =>
  Effect.gen(function* () {
    const folder = join(yield* temporaryFolder, "shared")
    yield* Effect.sync(() => {
      mkdirSync(folder, { mode: 0o755 })
      writeFileSync(join(folder, "notes.txt"), "")
    })
    yield* opened(folder)
    assert.strictEqual(modeOf(folder), 0o755)
    assert.strictEqual(modeOf(folder, "postgres"), 0o700)
  }).pipe(Effect.scoped)
)

it.live("A socket that a killed process left behind does not keep the folder closed", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    yield* Effect.callback<void>((resume) => {
      const server = createServer()
      server.listen(join(folder, "elsewhere.sock"), () => {
        renameSync(join(folder, "elsewhere.sock"), join(folder, "lock.sock"))
        server.close(() => resume(Effect.void))
      })
    })
    assert.deepStrictEqual(yield* opened(folder), [])
  }).pipe(Effect.scoped)
)
