/** What makes a change of a file last, so that neither a kill nor a power cut leaves half of it. */
import { ByteSize, Effect, FileSystem, Path, Stream } from "effect"
import type { PlatformError } from "effect/PlatformError"
import * as Target from "../Target.ts"

/** What fails with files is not tried again: the disk is full, or the folder is not ours to use. */
export const guarded = <A, R>(name: string, effect: Effect.Effect<A, Target.TargetError | PlatformError, R>) =>
  Effect.catchTag(effect, "PlatformError", ({ message }) =>
    Effect.fail(new Target.TargetRefused({ message: `${name} cannot be used: ${message}` }))
  )

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

/** Writes a new file, and has it on disk. Returns how many bytes were written. */
export const write = Effect.fnUntraced(function* <E, R>(file: string, pieces: Stream.Stream<Uint8Array, E, R>) {
  const fs = yield* FileSystem.FileSystem
  const handle = yield* fs.open(file, { flag: "w" })
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
