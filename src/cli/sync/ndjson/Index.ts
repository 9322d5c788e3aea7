/** Which lines of a data file count. The index is a file of its own, so that memory does not grow with the copy. */
import { Effect, FileSystem, Stream } from "effect"
import * as Sqlite from "../Sqlite.ts"
import * as Lines from "./Lines.ts"

function* mapped<A, B>(rows: Iterator<A>, f: (row: A) => B): Generator<B> {
  for (let row = rows.next(); row.done !== true; row = rows.next()) yield f(row.value)
}

/** The records that exist after the first bytes of a file, each with the position of its last line. */
export const make = Effect.fnUntraced(function* (name: string, file: string, bytes: number) {
  const fs = yield* FileSystem.FileSystem
  const indexFile = `${file}.index`
  const remove = fs.remove(indexFile, { force: true })
  yield* Effect.acquireRelease(remove, () => Effect.ignore(remove))
  const database = yield* Sqlite.open(name, indexFile)
  yield* Sqlite.attempt(name, () =>
    database.exec(`pragma journal_mode = off; pragma synchronous = off;
      create table lines (id text primary key, at integer not null) without rowid;
      begin`)
  )
  const put = database.prepare("insert or replace into lines values (?, ?)")
  const drop = database.prepare("delete from lines where id = ?")
  const add = ({ at, text }: Lines.Line) => {
    const change = Lines.decode(text)
    if (change.op === "upsert") put.run(change.record.id, at)
    else drop.run(change.id)
  }
  yield* Stream.runForEachArray(Lines.read(file, bytes), (lines) => Sqlite.attempt(name, () => lines.forEach(add)))
  yield* Sqlite.attempt(name, () => database.exec("commit; create index lines_at on lines (at)"))

  const inOrder = database.prepare("select at from lines order by at")
  const before = database.prepare("select id from lines where at < ? order by at")
  return {
    /** The positions of the lines that count, in their order. */
    positions: () => mapped(inOrder.iterate(), ({ at }) => Number(at)),
    /** The ids of records whose last line is before a position. */
    idsBefore: (position: number) => mapped(before.iterate(position), ({ id }) => String(id))
  }
})
