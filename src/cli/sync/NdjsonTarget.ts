/** A copy in a folder: a file for each resource, to which changes are appended. */
import { DateTime, Effect, Schema, Semaphore, Stream } from "effect"
import { Refused } from "../Usage.ts"
import * as Files from "./Files.ts"
import * as Lines from "./Lines.ts"
import * as Sqlite from "./SqliteTarget.ts"
import type { Table } from "./Table.ts"
import * as Target from "./Target.ts"

/** The state of the copy of a resource. */
const FileState = Schema.Struct({
  /** The bytes of the file that count. Any more were being written when the process was killed. */
  bytes: Schema.Int,
  cursor: Schema.NullOr(Schema.String),
  /** During a second load: the position at which it began. */
  reload_from: Schema.NullOr(Schema.Int),
  /** The time at which the copy was last in step. */
  in_step_at: Schema.NullOr(Schema.String),
  /** While a compacted file takes the place of the data file: the bytes of the compacted one. */
  compacted: Schema.NullOr(Schema.Int)
})
type FileState = typeof FileState.Type

const empty: FileState = { bytes: 0, cursor: null, reload_from: null, in_step_at: null, compacted: null }

/** The state of a folder, with the origin of the copy. */
const FolderState = Schema.fromJsonString(
  Schema.Struct({
    format: Schema.Int,
    organization: Schema.String,
    url: Schema.String,
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
    if (!(yield* fs.exists(stateFile))) return { format: Target.formatVersion, ...origin, resources: {} }
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
    let folderState: typeof FolderState.Type = { ...found, url: opening.origin.url }

    const write = Effect.gen(function* () {
      const text = yield* Effect.orDie(encode(folderState))
      yield* files.write(`${stateFile}.next`, Stream.make(Buffer.from(`${text}\n`)))
      yield* files.replace(`${stateFile}.next`, stateFile)
    })
    const oneAtATime = Semaphore.makeUnsafe(1)
    const stateOf = ({ resource }: Table) => folderState.resources[resource] ?? empty
    const save = ({ resource }: Table, state: FileState) =>
      Effect.suspend(() => {
        folderState = { ...folderState, resources: { ...folderState.resources, [resource]: state } }
        return write
      }).pipe(Semaphore.withPermit(oneAtATime))

    // Before any data file, so that a folder with data is known as ours.
    yield* write
    for (const table of opening.tables) yield* save(table, yield* recover(table, found.resources[table.resource]))

    /** Appends removals of the records that have not come again since a position. */
    const removeUnseen = Effect.fnUntraced(function* (table: Table, bytes: number, since: number) {
      const { removalsBefore } = yield* Lines.index(place, files, fileOf(table), bytes)
      return yield* files.writeAt(fileOf(table), bytes, removalsBefore(since))
    }, Effect.scoped)

    const compactedTo = new Map<string, number>()
    const compactFile = Effect.fnUntraced(function* (table: Table) {
      const compacting = compactingOf(table)
      const state = stateOf(table)
      if (state.reload_from !== null || state.bytes === compactedTo.get(table.resource)) return
      const { last } = yield* Lines.index(place, files, fileOf(table), state.bytes)
      const compacted = yield* files.write(compacting, last)
      yield* save(table, { ...state, compacted })
      yield* files.replace(compacting, fileOf(table))
      yield* save(table, { ...state, bytes: compacted, compacted: null })
      compactedTo.set(table.resource, compacted)
    }, Effect.scoped)

    const apply = Effect.fnUntraced(function* (table: Table, state: Target.State, page: Target.Page) {
      const next = Target.after(state, page)
      const before = stateOf(table)
      let bytes = before.bytes + (yield* files.writeAt(fileOf(table), before.bytes, Stream.make(Lines.linesOf(page))))
      const isLoaded = next.load === "done"
      if (before.reload_from !== null && isLoaded) bytes += yield* removeUnseen(table, bytes, before.reload_from)
      yield* save(table, {
        ...before,
        bytes,
        cursor: page.cursor,
        reload_from: isLoaded ? null : before.reload_from,
        in_step_at: Target.isInStep(next, page) ? DateTime.formatIso(yield* DateTime.now) : before.in_step_at
      })
      return next
    })

    const copy: Target.Copy = {
      stateOf: (table) =>
        Effect.sync(() => {
          const { cursor, in_step_at, reload_from } = stateOf(table)
          const load = reload_from !== null ? "again" : in_step_at === null ? "first" : "done"
          return { cursor: cursor ?? undefined, load }
        }),
      apply: (table, state, page) => asTarget(apply(table, state, page)),
      restart: Effect.fnUntraced(function* (table) {
        const state = stateOf(table)
        yield* asTarget(save(table, { ...state, cursor: null, reload_from: state.bytes }))
        return Target.reload
      }),
      finish: compact ? asTarget(Effect.forEach(opening.tables, compactFile, { discard: true })) : Effect.void
    }
    return copy
  })

  const target: Target.Target = { name, open: (opening) => asTarget(open(opening)) }
  return target
})
