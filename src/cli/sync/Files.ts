/** Durable changes of files: neither a kill nor a power cut leaves half of one. */
import { existsSync, lstatSync } from "node:fs"
import { ByteSize, Effect, FileSystem, Path, Predicate, Stream } from "effect"
import type { PlatformError } from "effect/PlatformError"
import * as Target from "./Target.ts"

// The disk is full or fails, or a file was removed, which is made again when the target is opened.
const temporary = new Set<unknown>(["ENOSPC", "EDQUOT", "EIO", "ENOENT"])

/** True if a retry may help after the system has refused something. */
export const isTemporary = (cause: unknown) => Predicate.hasProperty(cause, "code") && temporary.has(cause.code)

/** A failure with a file as one of its target. */
export const failureOf =
  (target: string) =>
  (error: PlatformError): Target.TargetError => {
    const { cause } = error
    const message = `${target} cannot be used: ${Predicate.isError(cause) ? cause.message : error.message}`
    return isTemporary(cause) ? new Target.TargetUnavailable({ message }) : new Target.TargetRefused({ message })
  }

/** Refuses a symbolic link to nothing, which would make a file in another place. */
export const refuseDangling = (path: string) =>
  Effect.suspend(() => {
    // A path that cannot be looked at cannot be made either.
    const isLink = Effect.try(() => lstatSync(path).isSymbolicLink())
    return Effect.flatMap(
      Effect.orElseSucceed(isLink, () => false),
      (found) =>
        found && !existsSync(path)
          ? Effect.fail(
              new Target.TargetRefused({ message: `${path} is a symbolic link to something that does not exist.` })
            )
          : Effect.void
    )
  })

/** The prefix of the files in a folder beside those of the resources. */
export const ownPrefix = "_practice_data_sync"

type Pieces = Stream.Stream<Uint8Array, Target.TargetError>

export type Files = Effect.Success<ReturnType<typeof make>>

/** The files of a target. */
export const make = Effect.fnUntraced(function* (target: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const toTargetError = failureOf(target)
  const mapped = <A, R>(effect: Effect.Effect<A, PlatformError | Target.TargetError, R>) =>
    Effect.catchTag(effect, "PlatformError", (error) => Effect.fail(toTargetError(error)))

  const writeTo = Effect.fnUntraced(function* (handle: FileSystem.File, pieces: Pieces) {
    let bytes = 0
    yield* Stream.runForEach(pieces, (piece) => {
      bytes += piece.length
      return handle.writeAll(piece)
    })
    yield* handle.sync
    return bytes
  })

  /** Writes a new file in the place of any other, and syncs it. Returns the bytes written. */
  const write = (file: string, pieces: Pieces) =>
    Effect.andThen(
      fs.remove(file, { force: true }),
      Effect.flatMap(fs.open(file, { flag: "wx" }), (handle) => writeTo(handle, pieces))
    ).pipe(Effect.scoped, mapped)

  /** Puts a file that is on disk in the place of another. */
  const replace = (from: string, to: string) =>
    Effect.andThen(
      fs.rename(from, to),
      // Not every system can sync a folder: there, a rename lasts once the system has written it.
      Effect.flatMap(fs.open(path.dirname(to)), (folder) => folder.sync).pipe(Effect.scoped, Effect.ignore)
    ).pipe(mapped)

  return {
    write,
    replace,
    /** Replaces a file by one with this text, at once. */
    writeAtOnce: (file: string, text: string) =>
      Effect.andThen(write(`${file}.next`, Stream.make(Buffer.from(text))), replace(`${file}.next`, file)),
    /** Writes at a position of a file, in the place of what follows, and syncs it. Returns the bytes written. */
    writeAt: (file: string, position: number, pieces: Pieces) =>
      Effect.gen(function* () {
        const handle = yield* fs.open(file, { flag: "r+" })
        yield* handle.truncate(position)
        yield* handle.seek(BigInt(position), "start")
        return yield* writeTo(handle, pieces)
      }).pipe(Effect.scoped, mapped),
    sync: (file: string) =>
      Effect.flatMap(fs.open(file, { flag: "r+" }), (handle) => handle.sync).pipe(Effect.scoped, mapped),
    exists: (file: string) => mapped(fs.exists(file)),
    remove: (file: string) => mapped(fs.remove(file, { force: true })),
    /** In bytes. */
    sizeOf: (file: string) => mapped(Effect.map(fs.stat(file), ({ size }) => ByteSize.toNumberUnsafe(size))),
    readText: (file: string) => mapped(fs.readFileString(file)),
    /** The first bytes of a file. */
    stream: (file: string, bytesToRead: number) =>
      Stream.mapError(fs.stream(file, { bytesToRead, chunkSize: 262_144 }), toTargetError),
    /** Makes a folder if there is none. Refuses one that has files, unless one of them is of the copy. */
    takeFolder: Effect.fnUntraced(function* (folder: string, own: string, elsewhere: string) {
      yield* refuseDangling(folder)
      yield* fs.makeDirectory(folder, { recursive: true })
      const found = yield* fs.readDirectory(folder)
      const other = found.find((file) => !file.startsWith(".") && !file.startsWith(ownPrefix))
      if (other !== undefined && !found.includes(own)) {
        return yield* new Target.TargetRefused({
          message: `The folder ${folder} has files that practice-data did not create, such as ${other}. Choose ${elsewhere}.`
        })
      }
    }, mapped)
  }
})
