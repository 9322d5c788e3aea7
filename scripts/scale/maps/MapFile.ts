/** A map of haproxy as a file, which is replaced as a whole. */
import { Effect, FileSystem, Stream } from "effect"
import type { Line } from "./Owners.ts"

/**
 * Writes a new file beside another one.
 *
 * @returns how many lines it has, and what puts it into the other one's place. Until then it goes away with the scope.
 */
export const write = Effect.fnUntraced(function* <E, R>(path: string, all: Stream.Stream<Line, E, R>) {
  const fs = yield* FileSystem.FileSystem
  const beside = `${path}.${process.pid}`
  yield* Effect.addFinalizer(() => Effect.ignore(fs.remove(beside, { force: true })))
  // A map is no secret, and nobody's business.
  const file = yield* fs.open(beside, { flag: "w", mode: 0o640 })
  let count = 0
  yield* Stream.runForEachArray(all, (lines) => {
    count += lines.length
    return file.writeAll(Buffer.from(lines.map(({ backend, key }) => `${key} ${backend}\n`).join("")))
  })
  yield* file.sync
  return { count, path, replace: fs.rename(beside, path) }
})
