/** What a folder notes beside its data files: what the copy is of, and how much of each file counts. */
import { Effect, FileSystem, Schema } from "effect"
import * as Files from "./Files.ts"

/** The copy of a resource. */
export const FileState = Schema.Struct({
  /** How many bytes of the file count. What follows was being written when the process was killed. */
  bytes: Schema.Int,
  cursor: Schema.NullOr(Schema.String),
  /** While all records are read anew: where in the file that began. */
  reload_from: Schema.NullOr(Schema.Int),
  /** When the copy was last in step. */
  in_step_at: Schema.NullOr(Schema.String),
  /** While a compacted file takes the place of the data file: the bytes of the compacted one. */
  compacted: Schema.NullOr(Schema.Int)
})
export type FileState = typeof FileState.Type

/** The copy of a resource that has nothing. */
export const empty: FileState = { bytes: 0, cursor: null, reload_from: null, in_step_at: null, compacted: null }

/** A folder. */
export const FolderState = Schema.Struct({
  format: Schema.Int,
  organization: Schema.String,
  url: Schema.String,
  resources: Schema.Record(Schema.String, FileState)
})
export type FolderState = typeof FolderState.Type

const Text = Schema.fromJsonString(FolderState, { space: 2 })
const decode = Schema.decodeEffect(Text)
const encode = Schema.encodeEffect(Text)

/** Reads the state; undefined where there is none. */
export const read = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  if (!(yield* fs.exists(file))) return undefined
  return yield* decode(yield* fs.readFileString(file))
})

/** Replaces the state, at once. */
export const write = (file: string, state: FolderState) =>
  Effect.flatMap(Effect.orDie(encode(state)), (text) => Files.writeAtOnce(file, `${text}\n`))
