/** A map of haproxy as a file, which is replaced as a whole. */
import { Effect, FileSystem, Stream } from "effect"
import type { PlatformError } from "effect/PlatformError"
import { MapsRefused } from "./Groups.ts"
import type { Line } from "./Owners.ts"

// A map is no secret, and nobody's business.
const mode = 0o640

const refused = ({ message }: PlatformError) => new MapsRefused({ message })

/** The lines of a file, as they stand. */
export const linesOf = (path: string) =>
  Stream.unwrap(Effect.map(FileSystem.FileSystem, (fs) => fs.stream(path))).pipe(
    Stream.decodeText,
    Stream.splitLines,
    Stream.mapError(refused)
  )

/**
 * Writes a new file beside another one, part by part.
 *
 * @returns how many lines it has, and what puts it into the other one's place. Until then it goes away with the scope.
 */
export const write = Effect.fnUntraced(function* <E, R>(
  path: string,
  parts: Iterable<Effect.Effect<ReadonlyArray<Line>, E, R>>
) {
  const fs = yield* FileSystem.FileSystem
  const beside = `${path}.${process.pid}`
  yield* Effect.addFinalizer(() => Effect.ignore(fs.remove(beside, { force: true })))
  const file = yield* Effect.mapError(fs.open(beside, { flag: "w", mode }), refused)
  let count = 0
  for (const part of parts) {
    const lines = yield* part
    count += lines.length
    const text = lines.map(({ backend, key }) => `${key} ${backend}\n`).join("")
    yield* Effect.mapError(file.writeAll(Buffer.from(text)), refused)
  }
  yield* Effect.mapError(file.sync, refused)
  return { count, path, replace: Effect.mapError(fs.rename(beside, path), refused) }
})
