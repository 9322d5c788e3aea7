/** A copy in a folder: a file for each resource, to which changes are appended. The last line of a record counts. */
import { DateTime, Effect, Schema, Stream } from "effect"
import { Refused } from "../Usage.ts"
import * as Files from "./Files.ts"
import * as Sqlite from "./SqliteTarget.ts"
import type { Table } from "./Table.ts"
import * as Target from "./Target.ts"

type Line = { readonly op: "upsert"; readonly record: object } | { readonly op: "remove"; readonly id: string }

const textOf = (lines: ReadonlyArray<Line>): Uint8Array =>
  Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(""))

const removalsOf = (ids: ReadonlyArray<string>) => textOf(ids.map((id) => ({ op: "remove", id })))

const lineOf = (change: Target.Change): ReadonlyArray<Line> => {
  if ("record" in change) return [{ op: "upsert", record: change.record }]
  return "removed" in change ? [{ op: "remove", id: change.removed }] : []
}

/** The lines of changes. A reset has none. */
const linesOf = (changes: ReadonlyArray<Target.Change>) => textOf(changes.flatMap(lineOf))

/** The lines in the first bytes of a file, each with the position of its first byte. */
const read = ({ fs }: Files.Files, file: string, bytesToRead: number) =>
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
const indexOf = Effect.fnUntraced(function* ({ name }: Target.Place, files: Files.Files, file: string, bytes: number) {
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

/** The state of the copy of a resource. */
const FileState = Schema.Struct({
  /** The bytes of the file that count. Any more were being written when the process was killed. */
  bytes: Schema.Int,
  /** While the resource is loaded again: the position at which this began. */
  reload_from: Schema.NullOr(Schema.Int),
  /** The time at which the copy was last in step. */
  in_step_at: Schema.NullOr(Schema.String),
  /** While a compacted file takes the place of the data file: the bytes of the compacted one. */
  compacted: Schema.NullOr(Schema.Int)
})
type FileState = typeof FileState.Type

const empty: FileState = { bytes: 0, reload_from: null, in_step_at: null, compacted: null }

/** The state of a folder, with the origin of the copy. */
const FolderState = Schema.fromJsonString(
  Schema.Struct({
    format: Schema.Int,
    organization: Schema.String,
    url: Schema.String,
    /** Missing in a copy of the first format, which has a cursor for each resource: it is loaded again. */
    state: Schema.optional(Target.State),
    resources: Schema.Record(Schema.String, FileState)
  }),
  { space: 2 }
)
const decode = Schema.decodeEffect(FolderState)
const encode = Schema.encodeEffect(FolderState)

/**
 * The target of a folder, which is made if there is none.
 *
 * @param compact rewrites each file to the last state of each record, once all are in step
 */
export const make = Effect.fnUntraced(function* (given: string, compact: boolean) {
  const files = yield* Files.make
  const { fs, path } = files
  const folder = path.resolve(given)
  const place: Target.Place = { name: `ndjson:${given}`, elsewhere: "another folder" }
  const { elsewhere, name } = place
  const asTarget = Files.asTarget(name)
  const stateName = `${Files.ownPrefix}.json`
  const stateFile = path.join(folder, stateName)
  const fileOf = (table: Table) => path.join(folder, `${table.name}.ndjson`)
  const compactingOf = (table: Table) => `${fileOf(table)}.compacting`

  const readState = Effect.fnUntraced(function* ({ origin }: Target.OpenOptions) {
    if (!(yield* fs.exists(stateFile))) return { ...origin, format: Target.formatVersion, resources: {} }
    return yield* Effect.mapError(
      decode(yield* fs.readFileString(stateFile)),
      () => new Refused({ message: `${stateFile} is damaged. Choose ${elsewhere}, or remove this one.` })
    )
  })

  /** Finishes what a kill has cut short, so that the file has what its state says. */
  const recover = Effect.fnUntraced(function* (table: Table, found: FileState | undefined) {
    const [file, compacting] = [fileOf(table), compactingOf(table)]
    let state = found ?? empty
    if (state.compacted !== null) {
      if (yield* fs.exists(compacting)) yield* files.replace(compacting, file)
      state = { ...state, bytes: state.compacted, compacted: null }
    } else yield* files.remove(compacting)
    if (!(yield* fs.exists(file))) {
      yield* files.write(file, Stream.empty)
      return empty
    }
    if (found === undefined) return yield* Target.notOurs(`file ${file}`, place)
    const { size } = yield* fs.stat(file)
    if (size < BigInt(state.bytes)) {
      return yield* new Refused({
        message: `${file} has ${size} bytes, and had ${state.bytes}. Restore it, or remove it to reload ${table.resource}.`
      })
    }
    yield* files.writeAt(file, state.bytes, Stream.empty)
    return state
  })

  const open = Effect.fnUntraced(function* (opening: Target.OpenOptions) {
    yield* files.takeFolder(folder, stateName, elsewhere)
    yield* Sqlite.lock(place, path.join(folder, `${Files.ownPrefix}.lock`))
    const found = yield* readState(opening)
    yield* Target.checkMark(place, found, opening)
    let folderState: typeof FolderState.Type = { ...found, format: Target.formatVersion, url: opening.origin.url }
    let state: Target.State = found.state ?? { resources: [] }

    const stateOf = ({ resource }: Table) => folderState.resources[resource] ?? empty
    const save = Effect.fnUntraced(function* (states: Readonly<Record<string, FileState>>) {
      folderState = { ...folderState, state, resources: { ...folderState.resources, ...states } }
      const text = yield* Effect.orDie(encode(folderState))
      yield* files.write(`${stateFile}.next`, Stream.make(Buffer.from(`${text}\n`)))
      yield* files.replace(`${stateFile}.next`, stateFile)
    })

    // Before any data file, so that a folder with data is known as ours.
    yield* save({})
    for (const table of opening.tables) {
      const { resource } = table
      const recovered = yield* recover(table, found.resources[resource])
      if (recovered === empty) state = { ...state, resources: state.resources.filter((one) => one !== resource) }
      yield* save({ [resource]: recovered })
    }

    /** Appends removals of the records that have not come again since a position. */
    const removeUnseen = Effect.fnUntraced(function* (table: Table, bytes: number, since: number) {
      const { removalsBefore } = yield* indexOf(place, files, fileOf(table), bytes)
      return yield* files.writeAt(fileOf(table), bytes, removalsBefore(since))
    }, Effect.scoped)

    const compactedTo = new Map<string, number>()
    const compactFile = Effect.fnUntraced(function* (table: Table) {
      const compacting = compactingOf(table)
      const before = stateOf(table)
      if (before.bytes === compactedTo.get(table.resource)) return
      const { last } = yield* indexOf(place, files, fileOf(table), before.bytes)
      const compacted = yield* files.write(compacting, last)
      yield* save({ [table.resource]: { ...before, compacted } })
      yield* files.replace(compacting, fileOf(table))
      yield* save({ [table.resource]: { ...before, bytes: compacted, compacted: null } })
      compactedTo.set(table.resource, compacted)
    }, Effect.scoped)

    /** Appends the changes of a resource, and ends its load at the end of a round. */
    const append = Effect.fnUntraced(function* (table: Table, changes: ReadonlyArray<Target.Change>, isLast: boolean) {
      const before = stateOf(table)
      const reset = changes.findLastIndex((change) => "reset" in change)
      const from = reset === -1 ? before.reload_from : before.bytes
      const lines = linesOf(changes.slice(reset + 1))
      let { bytes } = before
      if (lines.length > 0) bytes += yield* files.writeAt(fileOf(table), bytes, Stream.make(lines))
      if (isLast && from !== null && from > 0) bytes += yield* removeUnseen(table, bytes, from)
      return { ...before, bytes, reload_from: isLast ? null : from }
    })

    const apply = Effect.fnUntraced(function* (page: Target.Page, resources: ReadonlyArray<string>) {
      const changes = Map.groupBy(page.body, ({ resource }) => resource)
      const isLast = Target.endsRound(page)
      const now = yield* DateTime.now
      const at = DateTime.formatIso(DateTime.subtract(now, { seconds: page.is_consistent ? 0 : page.lag }))
      const states: Record<string, FileState> = {}
      for (const table of opening.tables) {
        const appended = yield* append(table, changes.get(table.resource) ?? [], isLast)
        const isInStep = !page.has_more && resources.includes(table.resource)
        states[table.resource] = isInStep ? { ...appended, in_step_at: at } : appended
      }
      state = { cursor: page.cursor, resources }
      yield* save(states)
      return state
    })

    const copy: Target.Copy = {
      state: Effect.sync(() => state),
      apply: (page, resources) => asTarget(apply(page, resources)),
      finish: compact ? asTarget(Effect.forEach(opening.tables, compactFile, { discard: true })) : Effect.void
    }
    return copy
  })

  const target: Target.Target = { name, open: (opening) => asTarget(open(opening)) }
  return target
})
