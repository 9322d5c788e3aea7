/** Durable changes of files: neither a kill nor a power cut leaves half of one. */
import { existsSync, lstatSync } from "node:fs"
import { Effect, FileSystem, Path, Predicate, Stream } from "effect"
import type { PlatformError } from "effect/PlatformError"
import * as Failure from "../../process/Failure.ts"
import { type Failed, Refused, Unavailable } from "../Usage.ts"

// The disk is full or fails, or a file was removed, which is made again when the target is opened.
const temporary = new Set<unknown>(["ENOSPC", "EDQUOT", "EIO", "ENOENT"])

/** The failure of a target in files. A retry may help if the system was short of something. */
export const failureOf = (target: string, cause: unknown): Failed => {
  const message = `${target} cannot be used: ${Failure.reasonOfFile(cause)}`
  const isTemporary = Predicate.hasProperty(cause, "code") && temporary.has(cause.code)
  return isTemporary ? new Unavailable({ message }) : new Refused({ message })
}

/** Refuses a symbolic link to nothing, which would make a file in another place. */
export const refuseDangling = (path: string) =>
  // A path that cannot be examined cannot be made either.
  Effect.try(() => lstatSync(path).isSymbolicLink() && !existsSync(path)).pipe(
    Effect.orElseSucceed(() => false),
    Effect.flatMap((isDangling) =>
      isDangling
        ? Effect.fail(new Refused({ message: `${path} is a symbolic link to something that does not exist.` }))
        : Effect.void
    )
  )

/** The prefix of the files in a folder beside those of the resources. */
export const ownPrefix = "_practice_data_sync"

/** Turns a failure with a file into one of its target. */
export const asTarget =
  (target: string) =>
  <A, R>(effect: Effect.Effect<A, PlatformError | Failed, R>): Effect.Effect<A, Failed, R> =>
    Effect.catchTag(effect, "PlatformError", (error) => Effect.fail(failureOf(target, error.cause ?? error)))

type Pieces = Stream.Stream<Uint8Array, PlatformError | Failed>

export type Files = Effect.Success<typeof make>

/** Operations on files. Each is on disk when it ends. */
export const make = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path

  const writeTo = Effect.fnUntraced(function* (handle: FileSystem.File, pieces: Pieces) {
    let bytes = 0
    yield* Stream.runForEach(pieces, (piece) => {
      bytes += piece.length
      return handle.writeAll(piece)
    })
    yield* handle.sync
    return bytes
  })

  const remove = (file: string) => fs.remove(file, { force: true })

  /** Writes a new file in the place of any other. Returns the bytes written. */
  const write = Effect.fnUntraced(function* (file: string, pieces: Pieces) {
    yield* remove(file)
    return yield* writeTo(yield* fs.open(file, { flag: "wx" }), pieces)
  }, Effect.scoped)

  /** Puts a file that is on disk in the place of another. */
  const replace = Effect.fnUntraced(function* (from: string, to: string) {
    yield* fs.rename(from, to)
    // Not every system can sync a folder: there, a rename lasts once the system has written it.
    yield* Effect.ignore(Effect.flatMap(fs.open(path.dirname(to)), (folder) => folder.sync))
  }, Effect.scoped)

  return {
    fs,
    path,
    remove,
    write,
    replace,
    /** Writes at a position of a file, in the place of what follows. Returns the bytes written. */
    writeAt: Effect.fnUntraced(function* (file: string, position: number, pieces: Pieces) {
      const handle = yield* fs.open(file, { flag: "r+" })
      yield* handle.truncate(position)
      yield* handle.seek(BigInt(position), "start")
      return yield* writeTo(handle, pieces)
    }, Effect.scoped),
    /** Makes a folder if there is none. Refuses one that has files, unless one of them is of the copy. */
    takeFolder: Effect.fnUntraced(function* (folder: string, own: string, elsewhere: string) {
      yield* refuseDangling(folder)
      yield* fs.makeDirectory(folder, { recursive: true })
      const found = yield* fs.readDirectory(folder)
      const other = found.find((file) => !file.startsWith(".") && !file.startsWith(ownPrefix))
      if (other !== undefined && !found.includes(own)) {
        return yield* new Refused({
          message: `The folder ${folder} has files that practice-data did not create, such as ${other}. Choose ${elsewhere}.`
        })
      }
    })
  }
})
