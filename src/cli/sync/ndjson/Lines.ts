/** The lines of a data file. Each is a change; the last one of a record counts. */
import { Effect, FileSystem, Stream } from "effect"
import type { Page, SyncRecord } from "../Target.ts"

/** A change. */
export type Change =
  | { readonly op: "upsert"; readonly record: SyncRecord }
  | { readonly op: "remove"; readonly id: string }

/** A line as it stands in a file. */
export interface Line {
  readonly text: string
  /** The position of its first byte. */
  readonly at: number
}

/** What a page changes. */
export const changesOf = ({ records, removed }: Page): ReadonlyArray<Change> => [
  ...removed.map((id) => ({ op: "remove", id }) as const),
  ...records.map((record) => ({ op: "upsert", record }) as const)
]

export const encode = (changes: ReadonlyArray<Change>): Uint8Array =>
  Buffer.from(changes.map((change) => `${JSON.stringify(change)}\n`).join(""))

export const decode = (text: string): Change => JSON.parse(text)

/** Reads the lines of the first bytes of a file. */
export const read = (file: string, bytes: number) =>
  Stream.unwrap(
    Effect.map(FileSystem.FileSystem, (fs) => {
      let end = 0
      const lineOf = (text: string): Line => {
        const at = end
        end += Buffer.byteLength(text) + 1
        return { text, at }
      }
      return fs
        .stream(file, { bytesToRead: bytes, chunkSize: 262_144 })
        .pipe(Stream.decodeText, Stream.splitLines, Stream.map(lineOf))
    })
  )
