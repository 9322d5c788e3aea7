/**
 * Folders in which the program has been started and stopped. A first start, which makes a cluster and fills it, takes
 * seconds: the test file that needs such a folder first makes one for all files of the run, and each test gets a copy.
 */
import { cpSync, existsSync, mkdirSync, renameSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { inject } from "vitest"
import { eventually } from "./eventually.ts"
import * as Process from "./Process.ts"

const isFirst = (folder: string) =>
  Effect.sync(() => {
    try {
      mkdirSync(folder)
      return true
    } catch {
      return false
    }
  })

const start = (folder: string) =>
  Effect.gen(function* () {
    const { address, kill, ended } = yield* Process.start({}, folder)
    yield* address
    yield* kill("SIGTERM")
    yield* ended
  }).pipe(Effect.scoped)

const original = Effect.gen(function* () {
  const run = inject("runFolder")
  const made = join(run, "used")
  const making = join(run, "first-start")
  if (yield* isFirst(making)) {
    const folder = join(making, "folder")
    mkdirSync(folder)
    yield* start(folder)
    renameSync(folder, made)
  }
  yield* eventually(
    "a first start",
    Effect.sync(() => existsSync(made))
  )
  return made
})

/** A copy, whose data is in `.data`. It goes away with the scope. */
export const usedFolder = Effect.gen(function* () {
  const [from, folder] = yield* Effect.all([original, Process.temporaryFolder])
  cpSync(from, folder, { recursive: true, filter: (path) => !path.endsWith(".sock") })
  return folder
})

/** Starts the program on the embedded database in such a folder: sooner than one that makes its database first. */
export const startUsed = (environment: Process.Environment) =>
  Effect.flatMap(usedFolder, (folder) => Process.start(environment, folder))
