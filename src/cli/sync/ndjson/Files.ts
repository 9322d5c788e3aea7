/** What makes a change of a file last, so that neither a kill nor a power cut leaves half of it. */
import { existsSync, lstatSync } from "node:fs"
import { ByteSize, Effect, FileSystem, Path, Predicate, Stream } from "effect"
import type { PlatformError } from "effect/PlatformError"
import * as Target from "../Target.ts"

// The disk is full or fails, or a file was removed, which is made anew when the target is opened again.
const temporary = new Set<unknown>(["ENOSPC", "EDQUOT", "EIO", "ENOENT"])

/** True if trying again may help after the system has refused something. */
export const isTemporary = (cause: unknown) => Predicate.hasProperty(cause, "code") && temporary.has(cause.code)

/** The failures with files as those of the target. */
export const guarded = <A, R>(name: string, effect: Effect.Effect<A, Target.TargetError | PlatformError, R>) =>
  Effect.catchTag(effect, "PlatformError", (error): Effect.Effect<never, Target.TargetError> => {
    const { cause } = error
    const message = `${name} cannot be used: ${Predicate.isError(cause) ? cause.message : error.message}`
    return Effect.fail(
      isTemporary(cause) ? new Target.TargetUnavailable({ message }) : new Target.TargetRefused({ message })
    )
  })

/** Refuses a symbolic link to nothing, which would have a file made in another place. */
export const refuseDangling = Effect.fnUntraced(function* (path: string) {
  // What cannot be looked at cannot be made either.
  const isLink = yield* Effect.orElseSucceed(
    Effect.try(() => lstatSync(path).isSymbolicLink()),
    () => false
  )
  if (isLink && !existsSync(path)) {
    return yield* new Target.TargetRefused({ message: `${path} is a symbolic link to something that does not exist.` })
  }
})

/** Has the names in a folder on disk. Not every system can: there, a rename lasts when the system has written it. */
const syncFolder = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  yield* Effect.flatMap(fs.open(folder), (handle) => handle.sync).pipe(Effect.scoped, Effect.ignore)
})

/** Puts a file that is on disk in the place of another. */
export const replace = Effect.fnUntraced(function* (from: string, to: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fs.rename(from, to)
  yield* syncFolder(path.dirname(to))
})

/** Has what was written to a file on disk. */
export const sync = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  yield* Effect.flatMap(fs.open(file, { flag: "r+" }), (handle) => handle.sync)
}, Effect.scoped)

const writeTo = Effect.fnUntraced(function* <E, R>(handle: FileSystem.File, pieces: Stream.Stream<Uint8Array, E, R>) {
  let bytes = 0
  yield* Stream.runForEach(pieces, (piece) => {
    bytes += piece.length
    return handle.writeAll(piece)
  })
  yield* handle.sync
  return bytes
})

/** Writes a new file in the place of what has its name, and has it on disk. Returns how many bytes were written. */
export const write = Effect.fnUntraced(function* <E, R>(file: string, pieces: Stream.Stream<Uint8Array, E, R>) {
  const fs = yield* FileSystem.FileSystem
  yield* fs.remove(file, { force: true })
  const handle = yield* fs.open(file, { flag: "wx" })
  return yield* writeTo(handle, pieces)
}, Effect.scoped)

/** Replaces a file by one with this text, at once. */
export const writeAtOnce = Effect.fnUntraced(function* (file: string, text: string) {
  const next = `${file}.next`
  yield* write(next, Stream.make(Buffer.from(text)))
  yield* replace(next, file)
})

/** Writes at a position of a file, in the place of what follows, and has it on disk. Returns how many bytes were written. */
export const writeAt = Effect.fnUntraced(function* <E, R>(
  file: string,
  position: number,
  pieces: Stream.Stream<Uint8Array, E, R>
) {
  const fs = yield* FileSystem.FileSystem
  const handle = yield* fs.open(file, { flag: "r+" })
  yield* handle.truncate(position)
  yield* handle.seek(BigInt(position), "start")
  return yield* writeTo(handle, pieces)
}, Effect.scoped)

/** The size of a file in bytes; undefined where there is none. */
export const sizeOf = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  if (!(yield* fs.exists(file))) return undefined
  return ByteSize.toNumberUnsafe((yield* fs.stat(file)).size)
})
