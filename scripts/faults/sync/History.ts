/**
 * What a history is: records, readers, and steps in their order. All of it follows from a seed and a number, and any
 * part of the steps is a history too: who plays it leaves out what has no meaning where it stands.
 */
import { Data } from "effect"
import type { Room } from "./Room.ts"

/** What becomes of the time of a written record: left alone, or set so many milliseconds from the clock's. */
export type Stamp = "left" | "now()" | number

/** What a statement does to the records of a room. Without ids, to all of them. */
export type Change = Data.TaggedEnum<{
  Insert: { readonly ids: ReadonlyArray<string>; readonly stamp: Stamp; readonly onConflict: OnConflict }
  Copy: { readonly ids: ReadonlyArray<string>; readonly stamp: Stamp }
  Update: { readonly ids: ReadonlyArray<string> | undefined; readonly stamp: Stamp }
  /** Updates in more subtransactions than a standby keeps in mind. */
  Nest: { readonly ids: ReadonlyArray<string>; readonly stamp: Stamp }
  /** An UPDATE that changes nothing. */
  Touch: { readonly ids: ReadonlyArray<string> | undefined }
  /** Marks as deleted what is not, and the other way round. */
  Mark: { readonly ids: ReadonlyArray<string>; readonly stamp: Stamp }
  Delete: { readonly ids: ReadonlyArray<string> | undefined }
  /** A delete and an insert. */
  Replace: { readonly ids: ReadonlyArray<string>; readonly stamp: Stamp }
  /** Writes the same version of records into both ledgers of the organization, or deletes them from both. */
  Pair: { readonly ids: ReadonlyArray<string>; readonly isDelete: boolean }
  Rename: { readonly from: string; readonly to: string; readonly stamp: Stamp }
  /** Gives a record to the other organization. */
  Move: { readonly id: string; readonly stamp: Stamp }
  /** Empties the table, of everybody's records, if no transaction is open. */
  Truncate: {}
}>
export type OnConflict = "fail" | "do nothing" | "update"
export const Change = Data.taggedEnum<Change>()

/** An event of the servers. */
export type Event =
  | "crash"
  | "restart"
  | "cut off the standby"
  | "failover"
  | "copy"
  | "restore"
  | "restore into a new timeline"

export type Isolation = "read committed" | "repeatable read" | "serializable"

export type Step = Data.TaggedEnum<{
  Begin: {
    readonly writer: number
    readonly isolation: Isolation
    readonly isAsynchronous: boolean
    readonly isReplicating: boolean
  }
  Commit: { readonly writer: number }
  Rollback: { readonly writer: number }
  Savepoint: { readonly writer: number }
  RollbackTo: { readonly writer: number }
  /** Prepares the open transaction for somebody else to end. */
  Prepare: { readonly writer: number }
  /** Ends the transaction that was prepared first. */
  Finish: { readonly writer: number; readonly isCommit: boolean }
  Write: { readonly writer: number; readonly room: number; readonly change: Change }
  /** Reads a page, which may take seconds to wait for a change. The others do not wait for one that is read beside them. */
  Page: { readonly reader: number; readonly limit: number; readonly isBeside: boolean; readonly wait: number }
  /** A reader of all resources leaves out the resource of a room from now on; none, where there is no such room. */
  Choose: { readonly reader: number; readonly without: number }
  Save: { readonly reader: number }
  /** Ends a reader, which begins again from what it saved last. */
  Kill: { readonly reader: number }
  Pause: { readonly millis: number }
  Befall: { readonly event: Event }
}>
export const Step = Data.taggedEnum<Step>()

export interface Reader {
  readonly room: Room
  /** True for a reader of the changes of all resources of the room's organization. */
  readonly isOfAll: boolean
}

export interface History {
  readonly seed: number
  readonly number: number
  readonly rooms: ReadonlyArray<Room>
  readonly writers: number
  readonly readers: ReadonlyArray<Reader>
  readonly steps: ReadonlyArray<Step>
}
