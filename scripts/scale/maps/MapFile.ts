/** A map of haproxy as a file, which is replaced as a whole. */
import { Effect, FileSystem, Stream } from "effect"
import type { PlatformError } from "effect/PlatformError"
import { MapsRefused } from "./Groups.ts"
import type { Line } from "./Owners.ts"

// A map is no secret, and nobody's business.
const mode = 0o640

const refused = ({ message }: PlatformError) => new MapsRefused({ message })

/**
 * The text of a file in pieces of whole lines.
 *
 * @param bytes how long a piece is at most, beside one line
 */
export const piecesOf = (path: string, bytes: number) =>
  Stream.unwrap(Effect.map(FileSystem.FileSystem, (fs) => fs.stream(path, { chunkSize: bytes }))).pipe(
    Stream.decodeText,
    Stream.mapError(refused),
    Stream.mapAccum(
      () => "",
      (rest, text) => {
        const all = rest + text
        const end = all.lastIndexOf("\n") + 1
        return [all.slice(end), end === 0 ? [] : [all.slice(0, end)]]
      }
    )
  )

/**
 * Writes a new file beside another one, part by part.
 *
 * @returns how many lines it has, and what puts it into the other one's place. Until then it goes away with the scope.
 */
export const write = Effect.fnUntraced(function* <E, R>(path: string, parts: Stream.Stream<ReadonlyArray<Line>, E, R>) {
  const fs = yield* FileSystem.FileSystem
  const beside = `${path}.${process.pid}`
  yield* Effect.addFinalizer(() => Effect.ignore(fs.remove(beside, { force: true })))
  const file = yield* Effect.mapError(fs.open(beside, { flag: "w", mode }), refused)
  let count = 0
  yield* Stream.runForEach(parts, (lines) => {
    count += lines.length
    const text = lines.map(({ backend, key }) => `${key} ${backend}\n`).join("")
    return Effect.mapError(file.writeAll(Buffer.from(text)), refused)
  })
  yield* Effect.mapError(file.sync, refused)
  return { count, path, replace: Effect.mapError(fs.rename(beside, path), refused) }
})
