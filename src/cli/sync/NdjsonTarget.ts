/** A copy in a folder: a file for each resource, to which changes are appended. */
import { Clock, DateTime, Effect, Path, Schema, Semaphore, Stream } from "effect"
import * as Files from "./Files.ts"
import * as Lines from "./Lines.ts"
import * as Sqlite from "./SqliteTarget.ts"
import type { Table } from "./Table.ts"
import * as Target from "./Target.ts"

const stateName = `${Files.ownPrefix}.json`
const lockName = `${Files.ownPrefix}.lock`

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
const FolderState = Schema.Struct({
  format: Schema.Int,
  organization: Schema.String,
  url: Schema.String,
  resources: Schema.Record(Schema.String, FileState)
})

const FolderText = Schema.fromJsonString(FolderState, { space: 2 })
const decodeState = Schema.decodeEffect(FolderText)
const encodeState = Schema.encodeEffect(FolderText)

const refuse = (message: string) => new Target.TargetRefused({ message })

export interface Options {
  readonly folder: string
  /** Rewrites each file to the last state of each record, once all are in step. */
  readonly compact: boolean
}

/** The target of a folder, which is made if there is none. */
export const make = Effect.fnUntraced(function* ({ compact, folder: given }: Options) {
  const path = yield* Path.Path
  const folder = path.resolve(given)
  const place: Target.Place = { name: `ndjson:${given}`, elsewhere: "another folder" }
  const { elsewhere, name } = place
  const files = yield* Files.make(name)
  const stateFile = path.join(folder, stateName)
  const fileOf = (table: Table) => path.join(folder, `${table.name}.ndjson`)
  const compactingOf = (table: Table) => `${fileOf(table)}.compacting`

  const readState = Effect.fnUntraced(function* ({ origin }: Target.OpenOptions) {
    if (!(yield* files.exists(stateFile))) return { format: Target.formatVersion, ...origin, resources: {} }
    return yield* Effect.mapError(decodeState(yield* files.readText(stateFile)), () =>
      refuse(`${stateFile} is damaged. Choose ${elsewhere}, or remove this one.`)
    )
  })

  /** Finishes what a kill has cut short, so that the file has what its state says. */
  const recover = Effect.fnUntraced(function* (table: Table, found: FileState | undefined) {
    const file = fileOf(table)
    const compacting = compactingOf(table)
    let state = found ?? empty
    if (state.compacted !== null) {
      if (yield* files.exists(compacting)) yield* files.replace(compacting, file)
      state = { ...state, bytes: state.compacted, compacted: null }
    } else yield* files.remove(compacting)
    if (!(yield* files.exists(file))) {
      yield* files.write(file, Stream.empty)
      return empty
    }
    if (found === undefined) return yield* Target.notOurs(`file ${file}`, place)
    const size = yield* files.sizeOf(file)
    if (size < state.bytes) {
      return yield* refuse(
        `${file} has ${size} bytes, and had ${state.bytes}. Restore it, or remove it to reload ${table.resource}.`
      )
    }
    if (size > state.bytes) yield* files.writeAt(file, state.bytes, Stream.empty)
    return state
  })

  const open = Effect.fnUntraced(function* (opening: Target.OpenOptions) {
    yield* files.takeFolder(folder, stateName, elsewhere)
    yield* Sqlite.lock(place, path.join(folder, lockName))
    let folderState: typeof FolderState.Type = yield* readState(opening)
    yield* Target.checkMark(place, folderState, opening)
    folderState = { ...folderState, url: opening.origin.url }

    const write = Effect.suspend(() => Effect.orDie(encodeState(folderState))).pipe(
      Effect.flatMap((text) => files.writeAtOnce(stateFile, `${text}\n`))
    )
    const oneAtATime = Semaphore.makeUnsafe(1)
    const stateOf = ({ resource }: Table) => folderState.resources[resource] ?? empty
    const save = ({ resource }: Table, state: FileState) =>
      Effect.suspend(() => {
        folderState = { ...folderState, resources: { ...folderState.resources, [resource]: state } }
        return write
      }).pipe(Semaphore.withPermit(oneAtATime))

    // Before any data file, so that a folder with data is known as ours.
    yield* write
    for (const table of opening.tables) {
      yield* save(table, yield* recover(table, folderState.resources[table.resource]))
    }

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

    const copy: Target.Copy = {
      stateOf: (table) =>
        Effect.sync(() => {
          const { cursor, in_step_at, reload_from } = stateOf(table)
          const load = reload_from !== null ? "again" : in_step_at === null ? "first" : "done"
          return { cursor: cursor ?? undefined, load }
        }),
      apply: Effect.fnUntraced(function* (table, state, page) {
        const next = Target.after(state, page)
        const before = stateOf(table)
        const lines = Stream.make(Lines.linesOf(page))
        let bytes = before.bytes + (yield* files.writeAt(fileOf(table), before.bytes, lines))
        if (before.reload_from !== null && next.load === "done") {
          bytes += yield* removeUnseen(table, bytes, before.reload_from)
        }
        const now = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
        yield* save(table, {
          ...before,
          bytes,
          cursor: page.cursor,
          reload_from: next.load === "done" ? null : before.reload_from,
          in_step_at: Target.isInStep(next, page) ? now : before.in_step_at
        })
        return next
      }),
      restart: (table) =>
        Effect.suspend(() => {
          const state = stateOf(table)
          return Effect.as(save(table, { ...state, cursor: null, reload_from: state.bytes }), {
            cursor: undefined,
            load: "again"
          })
        }),
      finish: compact ? Effect.forEach(opening.tables, compactFile, { discard: true }) : Effect.void
    }
    return copy
  })

  const target: Target.Target = { name, open }
  return target
})
