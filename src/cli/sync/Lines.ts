/** The lines of an NDJSON file. Each is a change; the last one of a record counts. */
import { Effect, Stream } from "effect"
import type { Files } from "./Files.ts"
import * as Sqlite from "./SqliteTarget.ts"
import type { Change, Place } from "./Target.ts"

type Line = { readonly op: "upsert"; readonly record: object } | { readonly op: "remove"; readonly id: string }

const textOf = (lines: ReadonlyArray<Line>): Uint8Array =>
  Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(""))

const removalsOf = (ids: ReadonlyArray<string>) => textOf(ids.map((id) => ({ op: "remove", id })))

const lineOf = (change: Change): ReadonlyArray<Line> => {
  if ("record" in change) return [{ op: "upsert", record: change.record }]
  return "removed" in change ? [{ op: "remove", id: change.removed }] : []
}

/** The lines of changes. A reset has none. */
export const linesOf = (changes: ReadonlyArray<Change>) => textOf(changes.flatMap(lineOf))

/** The lines in the first bytes of a file, each with the position of its first byte. */
const read = ({ fs }: Files, file: string, bytesToRead: number) =>
  Stream.suspend(() => {
    let end = 0
    return fs.stream(file, { bytesToRead, chunkSize: 262_144 }).pipe(
      Stream.decodeText,
      Stream.splitLines,
      Stream.map((text) => {
        const at = end
        end += Buffer.byteLength(text) + 1
        return { text, at }
      })
    )
  })

/**
 * An index of the records in the first bytes of a file by the position of their last line, until the scope closes. The
 * index is a file of its own, so that memory does not grow with the copy.
 */
export const index = Effect.fnUntraced(function* ({ name }: Place, files: Files, file: string, bytes: number) {
  const indexFile = `${file}.index`
  yield* Effect.acquireRelease(files.remove(indexFile), () => Effect.ignore(files.remove(indexFile)))
  const database = yield* Sqlite.open(name, indexFile)
  const attempt = <A>(work: () => A) => Sqlite.attempt(name, work)
  yield* attempt(() =>
    database.exec(`pragma journal_mode = off; pragma synchronous = off;
      create table lines (id text primary key, at integer not null) without rowid;
      begin`)
  )
  const put = database.prepare("insert or replace into lines values (?, ?)")
  const drop = database.prepare("delete from lines where id = ?")
  yield* Stream.runForEachArray(read(files, file, bytes), (lines) =>
    attempt(() => {
      for (const { at, text } of lines) {
        const change = JSON.parse(text)
        if (change.op === "upsert") put.run(String(change.record["id"]), at)
        else drop.run(change.id)
      }
    })
  )
  yield* attempt(() => database.exec("commit; create index lines_at on lines (at)"))

  const before = database.prepare("select id from lines where at < ? order by at")
  const counts = database.prepare("select 1 from lines where at = ?")
  return {
    /** Lines that remove the records whose last line is before a position. */
    removalsBefore: (position: number) =>
      Stream.fromIterable(before.iterate(position), { chunkSize: 1000 }).pipe(
        Stream.mapArray((rows) => [removalsOf(rows.map(({ id }) => String(id)))])
      ),
    /** The last line of each record. */
    last: Stream.mapArray(read(files, file, bytes), (lines) => {
      const kept = lines.filter(({ at }) => counts.get(at) !== undefined)
      return [Buffer.from(kept.map(({ text }) => `${text}\n`).join(""))]
    })
  }
})
