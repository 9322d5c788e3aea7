/**
 * The access to the folder of the embedded database: its pages and logs have signing secrets.
 *
 * @module-tag long
 */
import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { Reactivity } from "effect/reactivity"
import * as Embedded from "../../../src/database/Embedded.ts"
import { temporaryFolder } from "../../support/Process.ts"
import * as Program from "../../support/Program.ts"

const modeOf = (...path: ReadonlyArray<string>) => statSync(join(...path)).mode & 0o777

/** Opens the database and closes it again. */
const opened = (folder: string) =>
  Embedded.connect(folder).pipe(Effect.scoped, Effect.provide([NodeServices.layer, Reactivity.layer]))

it.live("The data folder is its owner's alone, also where it was open", () =>
  Effect.gen(function* () {
    const folder = join(yield* temporaryFolder, "above", ".data")
    yield* opened(folder)
    assert.strictEqual(modeOf(folder), 0o700)
    yield* Effect.sync(() => {
      chmodSync(folder, 0o755)
      chmodSync(join(folder, "postgres"), 0o755)
    })
    yield* opened(folder)
    assert.strictEqual(modeOf(folder), 0o700)
    assert.strictEqual(modeOf(folder, "postgres"), 0o700)
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

/** Damages to the files of a cluster, each with what the error names. */
const damages = [
  ["its control file is lost", "global/pg_control", "", /damaged.*Replace the folder by a backup, or delete it/],
  ["its version is lost", "PG_VERSION", "", /damaged.*Replace the folder by a backup, or delete it/],
  ["it is newer", "PG_VERSION", "99\n", /was made by Postgres 99.*Start the release that made it/]
] as const

it.live.each(damages)("A cluster that cannot be opened is named with a remedy, and left as it is: %s", (damage) =>
  Effect.gen(function* () {
    const [, file, text, says] = damage
    const folder = join(yield* Program.usedFolder, ".data")
    writeFileSync(join(folder, "postgres", file), text)
    const { message } = yield* Effect.flip(opened(folder))
    assert.match(message, says)
    assert.include(message, folder)
    assert.strictEqual(readFileSync(join(folder, "postgres", file), "utf8"), text)
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
    yield* opened(folder)
  }).pipe(Effect.scoped)
)
