/** A copy in a folder: a file for each resource, to which changes are appended. The last line of a record counts. */
import { createReadStream, existsSync, readFileSync, readSync, statSync } from "node:fs"
import { join, resolve } from "node:path"
import { DateTime, Effect, Schema, Stream } from "effect"
import { type Failed, Refused } from "../Usage.ts"
import * as Files from "./Files.ts"
import type { Table } from "./Table.ts"
import * as Target from "./Target.ts"

/** The line of a change. A reset has none. */
const lineOf = (change: Target.Change): string => {
  if ("reset" in change) return ""
  const line = "record" in change ? { op: "upsert", record: change.record } : { op: "remove", id: change.removed }
  return `${JSON.stringify(line)}\n`
}

/**
 * An index of the records in the first bytes of a file: the position and the length of their last line, in their order.
 * It is a file of its own until the scope closes, so that memory does not grow with the copy.
 */
const indexOf = Effect.fnUntraced(function* (target: string, file: string, bytes: number) {
  const attempt = <A>(work: () => A) => Files.attempt(target, work)
  const remove = attempt(() => Files.remove(`${file}.index`))
  yield* Effect.acquireRelease(remove, () => Effect.ignore(remove))
  const database = yield* Files.openSqlite(target, `${file}.index`)
  yield* attempt(() =>
    database.exec(`pragma journal_mode = off; pragma synchronous = off;
      create table lines (id text primary key, at integer not null, bytes integer not null);
      begin`)
  )
  const put = database.prepare("insert or replace into lines values (?, ?, ?)")
  const drop = database.prepare("delete from lines where id = ?")
  const chunks = createReadStream(file, { end: bytes - 1, highWaterMark: 262_144 })
  let at = 0
  yield* Stream.fromAsyncIterable<Uint8Array, Failed>(chunks, (cause) => Files.failureOf(target, cause)).pipe(
    Stream.decodeText,
    Stream.splitLines,
    Stream.runForEachArray((lines) =>
      attempt(() => {
        for (const line of lines) {
          const change = JSON.parse(line)
          const length = Buffer.byteLength(line) + 1
          if (change.op === "upsert") put.run(String(change.record["id"]), at, length)
          else drop.run(change.id)
          at += length
        }
      })
    )
  )
  yield* attempt(() => database.exec("commit"))
  return database
})

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

type Found = Iterable<Readonly<Record<string, unknown>>>

function* removalsOf(records: Found) {
  for (const { id } of records) yield lineOf({ resource: "", removed: String(id) })
}

function* linesAt(handle: number, places: Found) {
  for (const { at, bytes } of places) {
    const line = Buffer.alloc(Number(bytes))
    readSync(handle, line, 0, line.length, Number(at))
    yield line
  }
}

/** The state of a folder, with the origin of the copy. */
const FolderState = Schema.fromJsonString(
  Schema.Struct({
    format: Schema.Int,
    organization: Schema.String,
    url: Schema.String,
    /** Missing in a copy of the first format, which has a cursor for each resource: it is loaded again. */
    state: Schema.optional(Target.State),
    resources: Schema.Record(Schema.String, FileState)
  })
)
type FolderState = typeof FolderState.Type

const decode = Schema.decodeEffect(FolderState)

/**
 * The target of a folder, which is made if there is none.
 *
 * @param compact rewrites each file to the last state of each record, once all are in step
 */
export const make = (given: string, compact: boolean): Target.Target => {
  const folder = resolve(given)
  const place: Target.Place = { name: `ndjson:${given}`, elsewhere: "another folder" }
  const { elsewhere, name } = place
  const stateName = `${Files.ownPrefix}.json`
  const stateFile = join(folder, stateName)
  const fileOf = (table: Table) => join(folder, `${table.name}.ndjson`)
  const compactingOf = (table: Table) => `${fileOf(table)}.compacting`
  const attempt = <A>(work: () => A) => Files.attempt(name, work)

  const readState = Effect.fnUntraced(function* ({ origin }: Target.OpenOptions) {
    if (!existsSync(stateFile)) return { ...origin, format: Target.formatVersion, resources: {} }
    const text = yield* attempt(() => readFileSync(stateFile, "utf8"))
    return yield* Effect.mapError(
      decode(text),
      () => new Refused({ message: `${stateFile} is damaged. Choose ${elsewhere}, or remove this one.` })
    )
  })

  /** Finishes what a kill has cut short, so that the file has what its state says. */
  const recover = Effect.fnUntraced(function* (table: Table, found: FileState | undefined) {
    const [file, compacting] = [fileOf(table), compactingOf(table)]
    let state = found ?? empty
    if (state.compacted !== null) {
      if (existsSync(compacting)) yield* attempt(() => Files.replace(compacting, file))
      state = { ...state, bytes: state.compacted, compacted: null }
    }
    yield* attempt(() => Files.remove(compacting))
    if (!existsSync(file)) {
      yield* attempt(() => Files.write(file, ""))
      return empty
    }
    const { size } = yield* attempt(() => statSync(file))
    // An empty one may be of a run that was killed before its state was written.
    if (found === undefined && size > 0) return yield* Target.notOurs(`file ${file}`, place)
    if (size < state.bytes) {
      return yield* new Refused({
        message: `${file} has ${size} bytes, and had ${state.bytes}. Restore it, or remove it to reload ${table.resource}.`
      })
    }
    yield* attempt(() => Files.writeAt(file, state.bytes, []))
    return state
  })

  const open = Effect.fnUntraced(function* (opening: Target.OpenOptions) {
    yield* Files.takeFolder(place, folder, stateName)
    yield* Files.lock(place, join(folder, `${Files.ownPrefix}.lock`))
    const found: FolderState = yield* readState(opening)
    yield* Target.checkMark(place, found, opening)
    const { url } = opening.origin
    let current = { ...found, state: found.state ?? { resources: [] }, format: Target.formatVersion, url }

    const stateOf = ({ resource }: Table) => current.resources[resource] ?? empty
    const save = (states: FolderState["resources"], state: Target.State) => {
      current = { ...current, state, resources: { ...current.resources, ...states } }
      return attempt(() => Files.write(stateFile, `${JSON.stringify(current, null, 2)}\n`))
    }

    // Before any data file, so that a folder with data is known as ours.
    yield* save({}, current.state)
    for (const table of opening.tables) {
      const { resource } = table
      const recovered = yield* recover(table, found.resources[resource])
      const { resources } = current.state
      const whole = recovered === empty ? resources.filter((one) => one !== resource) : resources
      yield* save({ [resource]: recovered }, { ...current.state, resources: whole })
    }

    /** Appends removals of the records that have not come again since a position. Returns the size of the file. */
    const removeUnseen = Effect.fnUntraced(function* (file: string, bytes: number, since: number) {
      const index = yield* indexOf(name, file, bytes)
      return yield* attempt(() => {
        const unseen = index.prepare("select id from lines where at < ? order by rowid").iterate(since)
        return Files.writeAt(file, bytes, removalsOf(unseen))
      })
    }, Effect.scoped)

    const compactedTo = new Map<string, number>()
    const compactFile = Effect.fnUntraced(function* (table: Table) {
      const [file, compacting] = [fileOf(table), compactingOf(table)]
      const before = stateOf(table)
      if (before.bytes === (compactedTo.get(table.resource) ?? 0)) return
      const index = yield* indexOf(name, file, before.bytes)
      const compacted = yield* attempt(() => {
        Files.write(compacting, "")
        const last = index.prepare("select at, bytes from lines order by rowid").iterate()
        return Files.using(file, "r", (handle) => Files.writeAt(compacting, 0, linesAt(handle, last)))
      })
      yield* save({ [table.resource]: { ...before, compacted } }, current.state)
      yield* attempt(() => Files.replace(compacting, file))
      yield* save({ [table.resource]: { ...before, bytes: compacted, compacted: null } }, current.state)
      compactedTo.set(table.resource, compacted)
    }, Effect.scoped)

    /** Appends the changes of a resource, and ends its load at the end of a round. */
    const append = Effect.fnUntraced(function* (table: Table, changes: ReadonlyArray<Target.Change>, isLast: boolean) {
      const [file, before] = [fileOf(table), stateOf(table)]
      const reset = changes.findLastIndex((change) => "reset" in change)
      const from = reset === -1 ? before.reload_from : before.bytes
      const lines = changes.slice(reset + 1).map(lineOf)
      let { bytes } = before
      if (lines.length > 0) bytes = yield* attempt(() => Files.writeAt(file, before.bytes, [lines.join("")]))
      if (isLast && from !== null && from > 0) bytes = yield* removeUnseen(file, bytes, from)
      return { ...before, bytes, reload_from: isLast ? null : from }
    })

    const apply = Effect.fnUntraced(function* (page: Target.Page, resources: ReadonlyArray<string>) {
      const changes = Map.groupBy(page.body, ({ resource }) => resource)
      const at = Target.inStepAt(page, yield* DateTime.now)
      const states: Record<string, FileState> = {}
      for (const table of opening.tables) {
        const appended = yield* append(table, changes.get(table.resource) ?? [], Target.endsRound(page))
        const isInStep = !page.has_more && resources.includes(table.resource)
        states[table.resource] = isInStep ? { ...appended, in_step_at: at } : appended
      }
      yield* save(states, { cursor: page.cursor, resources })
    })

    const copy: Target.Copy = {
      state: Effect.sync(() => current.state),
      apply,
      finish: compact ? Effect.forEach(opening.tables, compactFile, { discard: true }) : Effect.void
    }
    return copy
  })

  return { name, open }
}
