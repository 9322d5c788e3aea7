/** Checks the folder of the embedded database, and opens the database if it is there. */
import { Effect, FileSystem, Path } from "effect"
import { statfs } from "node:fs/promises"
import * as Embedded from "../../database/Embedded.ts"
import type { Settings } from "../../app/Config.ts"
import { fail, ok, type Said, warn } from "./Finding.ts"

const mebibyte = 1024 * 1024

/** Mebibytes. */
const little = 500

/** The nearest folder that exists: the path itself, or one above it. */
const existing = (folder: string): Effect.Effect<string, never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const above = (yield* Path.Path).dirname(folder)
    if (above === folder || (yield* Effect.orElseSucceed(fs.exists(folder), () => false))) return folder
    return yield* existing(above)
  })

/** What is said of the folder, and whether there is a database in it. */
export const check = Effect.fnUntraced(function* ({ dataDir, processes }: Settings) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const said: Array<Said> =
    processes > 1
      ? [fail(`PROCESSES=${processes} needs a Postgres.`, "Set DATABASE_URL, or leave PROCESSES unset.")]
      : []
  if (dataDir === "memory") {
    return { said: [...said, ok("DATA_DIR=memory: it is kept in the memory of the service.")], isThere: false }
  }
  const folder = path.resolve(dataDir)
  const isThere = yield* Effect.orElseSucceed(fs.exists(path.join(folder, "made")), () => false)
  const parent = yield* existing(folder)
  const isWritable = yield* fs.stat(parent).pipe(
    Effect.filterOrFail(({ type }) => type === "Directory"),
    Effect.andThen(fs.access(parent, { writable: true })),
    Effect.as(true),
    Effect.orElseSucceed(() => false)
  )
  if (!isWritable) {
    said.push(
      fail(
        `${folder} cannot be written: ${parent} is no folder, or not this user's.`,
        "Choose another folder with DATA_DIR, or give this user the right."
      )
    )
  }
  const free = yield* Effect.option(Effect.tryPromise(() => statfs(parent)))
  if (free._tag === "Some") {
    const mebibytes = Math.floor((free.value.bavail * free.value.bsize) / mebibyte)
    if (mebibytes < little) said.push(warn(`${parent} has ${mebibytes} MiB left.`, "Make room on its disk."))
  }
  if (!isThere && isWritable) said.push(ok(`There is none in ${folder} yet; the first start makes it.`))
  return { said, isThere: isThere && isWritable }
})

/** Opens it, as a guest where the service has it open. */
export const open = (settings: Settings) =>
  Effect.map(Embedded.connect(settings.dataDir, { asGuest: true }), ({ isGuest, sql }) => ({
    sql,
    said: ok(isGuest ? "Another process has it open, and shares it." : "It opens.")
  }))
