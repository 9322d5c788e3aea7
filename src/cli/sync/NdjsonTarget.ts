/** A copy in a folder: a file for each resource, to which changes are appended. */
import { Clock, DateTime, Effect, FileSystem, Path, type Schema, Semaphore, Stream } from "effect"
import type { PlatformError } from "effect/PlatformError"
import * as Files from "./ndjson/Files.ts"
import * as Index from "./ndjson/Index.ts"
import * as Lines from "./ndjson/Lines.ts"
import * as State from "./ndjson/State.ts"
import * as Sqlite from "./Sqlite.ts"
import type { Table } from "./Table.ts"
import * as Target from "./Target.ts"

const stateName = "_practice_data_sync.json"
const lockName = "_practice_data_sync.lock"

/** How many lines are written at once. */
const linesAtOnce = 1000

const refuse = (message: string) => new Target.TargetRefused({ message })

const ownNames = [stateName, lockName, `${stateName}.next`]

export interface Options {
  readonly folder: string
  /** Whether to rewrite each file to the last state of each record, once all are in step. */
  readonly compact: boolean
}

/** The target of a folder, which is made if there is none. */
export const make = Effect.fnUntraced(function* ({ compact, folder: given }: Options) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = path.resolve(given)
  const name = `ndjson:${given}`
  const elsewhere = "another folder"
  const stateFile = path.join(folder, stateName)
  const fileOf = (table: Table) => path.join(folder, `${table.name}.ndjson`)

  const guarded = <A, R>(effect: Effect.Effect<A, Target.TargetError | PlatformError | Schema.SchemaError, R>) =>
    Files.guarded(
      name,
      Effect.catchTag(effect, "SchemaError", () =>
        Effect.fail(refuse(`${stateFile} is damaged. Choose ${elsewhere}, or remove this one.`))
      )
    ).pipe(Effect.provideService(FileSystem.FileSystem, fs), Effect.provideService(Path.Path, path))

  const takeFolder = Effect.gen(function* () {
    yield* Files.refuseDangling(folder)
    yield* fs.makeDirectory(folder, { recursive: true })
    const isMade = yield* fs.exists(stateFile)
    const others = (yield* fs.readDirectory(folder)).filter(
      (found) => !found.startsWith(".") && !ownNames.includes(found)
    )
    if (!isMade && others.length > 0) {
      return yield* refuse(
        `The folder ${folder} has files that practice-data has not made, such as ${others[0]}. Choose ${elsewhere}.`
      )
    }
    if (!(yield* Sqlite.lock(name, path.join(folder, lockName)))) {
      return yield* refuse(`Another process keeps the copy in ${name} in step. Stop it first, or choose ${elsewhere}.`)
    }
  })

  /** Finishes what a kill has cut short, so that the file has what its state says. */
  const recover = Effect.fnUntraced(function* (table: Table, found: State.FileState | undefined) {
    const file = fileOf(table)
    const compacting = `${file}.compacting`
    let state = found ?? State.empty
    if (state.compacted !== null) {
      if (yield* fs.exists(compacting)) yield* Files.replace(compacting, file)
      state = { ...state, bytes: state.compacted, compacted: null }
    } else yield* fs.remove(compacting, { force: true })
    const size = yield* Files.sizeOf(file)
    if (size !== undefined && found === undefined) {
      return yield* refuse(`There is a file ${file} that practice-data has not made. Choose ${elsewhere}.`)
    }
    if (size === undefined) {
      yield* Files.write(file, Stream.empty)
      return State.empty
    }
    if (size < state.bytes) {
      return yield* refuse(
        `${file} has ${size} bytes, and had ${state.bytes}. Restore it, or remove it to have ${table.resource} read anew.`
      )
    }
    if (size > state.bytes) yield* Files.writeAt(file, state.bytes, Stream.empty)
    return state
  })

  const open = Effect.fnUntraced(function* (opening: Target.OpenOptions) {
    yield* takeFolder
    let folderState = (yield* State.read(stateFile)) ?? {
      format: Target.formatVersion,
      ...opening.origin,
      resources: {}
    }
    const refusal = Target.refusalOf(name, folderState, opening, elsewhere)
    if (refusal !== undefined) return yield* refusal
    folderState = { ...folderState, url: opening.origin.url }

    const oneAtATime = Semaphore.makeUnsafe(1)
    const stateOf = (table: Table) => folderState.resources[table.resource] ?? State.empty
    const save = (table: Table, state: State.FileState) =>
      Effect.suspend(() => {
        folderState = { ...folderState, resources: { ...folderState.resources, [table.resource]: state } }
        return State.write(stateFile, folderState)
      }).pipe(Semaphore.withPermit(oneAtATime))

    // Before any data file, so that a folder with data is known as ours.
    yield* State.write(stateFile, folderState)
    for (const table of opening.tables) {
      yield* save(table, yield* recover(table, folderState.resources[table.resource]))
    }

    /** Appends removals of the records that have not come again since a position. */
    const removeUnseen = Effect.fnUntraced(function* (table: Table, bytes: number, since: number) {
      const index = yield* Index.make(name, fileOf(table), bytes)
      const removals = Stream.fromIterable(index.idsBefore(since), { chunkSize: linesAtOnce }).pipe(
        Stream.map((id) => Lines.encode([{ op: "remove", id }]))
      )
      return yield* Files.writeAt(fileOf(table), bytes, removals)
    }, Effect.scoped)

    const compactedTo = new Map<string, number>()
    const compactFile = Effect.fnUntraced(function* (table: Table) {
      const file = fileOf(table)
      const compacting = `${file}.compacting`
      const state = stateOf(table)
      if (state.reload_from !== null || state.bytes === compactedTo.get(table.resource)) return
      const { positions } = yield* Index.make(name, file, state.bytes)
      const remaining = positions()
      let next = remaining.next()
      const counts = ({ at }: Lines.Line) => {
        if (next.value !== at) return false
        next = remaining.next()
        return true
      }
      const kept = Stream.mapArray(Lines.read(file, state.bytes), (lines) => [
        Buffer.from(
          lines
            .filter(counts)
            .map(({ text }) => `${text}\n`)
            .join("")
        )
      ])
      const compacted = yield* Files.write(compacting, kept)
      yield* save(table, { ...state, compacted })
      yield* Files.replace(compacting, file)
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
      apply: (table, state, page) =>
        guarded(
          Effect.gen(function* () {
            const next = Target.after(state, page)
            const before = stateOf(table)
            const written = yield* Files.writeAt(
              fileOf(table),
              before.bytes,
              Stream.make(Lines.encode(Lines.changesOf(page)))
            )
            let bytes = before.bytes + written
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
          })
        ),
      restart: (table) =>
        guarded(
          Effect.suspend(() => {
            const state = stateOf(table)
            return save(table, { ...state, cursor: null, reload_from: state.bytes })
          })
        ).pipe(Effect.as({ cursor: undefined, load: "again" })),
      finish: compact ? guarded(Effect.forEach(opening.tables, compactFile, { discard: true })) : Effect.void
    }
    return copy
  })

  const target: Target.Target = { name, open: (opening) => guarded(open(opening)) }
  return target
})
