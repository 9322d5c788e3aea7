/**
 * What a history is: records, readers, and steps in their order. All of it follows from a seed and a number, and any
 * part of the steps is a history too: who plays it leaves out what has no meaning where it stands.
 */
import { Data } from "effect"
import { idOf, type Room } from "./Room.ts"

/** What becomes of the time of a written record: left alone, or set so many milliseconds from the clock's. */
export type Stamp = "left" | "now()" | number

/** What a statement does to the records of a room. Without ids, to all of them. */
export type Change = Data.TaggedEnum<{
  Insert: { readonly ids: ReadonlyArray<string>; readonly stamp: Stamp; readonly onConflict: OnConflict }
  Copy: { readonly ids: ReadonlyArray<string>; readonly stamp: Stamp }
  Update: { readonly ids?: ReadonlyArray<string>; readonly stamp: Stamp }
  /** Updates in more subtransactions than a standby keeps in mind. */
  Nest: { readonly ids: ReadonlyArray<string>; readonly stamp: Stamp }
  /** An UPDATE that changes nothing. */
  Touch: { readonly ids?: ReadonlyArray<string> }
  /** Marks as deleted what is not, and the other way round. */
  Mark: { readonly ids: ReadonlyArray<string>; readonly stamp: Stamp }
  Delete: { readonly ids?: ReadonlyArray<string> }
  /** A delete and an insert. */
  Replace: { readonly ids: ReadonlyArray<string>; readonly stamp: Stamp }
  Rename: { readonly from: string; readonly to: string; readonly stamp: Stamp }
  /** Gives a record to the other organization. */
  Move: { readonly id: string; readonly stamp: Stamp }
  /** Empties the table, of everybody's records, if no transaction is open. */
  Truncate: {}
}>
export type OnConflict = "fail" | "do nothing" | "update"
export const Change = Data.taggedEnum<Change>()

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
  /** Sends a delivery that names records of the organization of a room. */
  Deliver: { readonly room: number; readonly invoices: ReadonlyArray<string>; readonly lines: ReadonlyArray<string> }
  /** Reads a page, which may take seconds to wait for a change. The others do not wait for one that is read beside them. */
  Page: { readonly reader: number; readonly limit: number; readonly isBeside: boolean; readonly wait: number }
  Save: { readonly reader: number }
  /** Ends a reader, which begins again from what it saved last. */
  Kill: { readonly reader: number }
  Pause: { readonly millis: number }
}>
export const Step = Data.taggedEnum<Step>()

/**
 * How a reader reads. By changes: of the first service, of the second one, which reads a replica, or of both in turn. By
 * search: from before the last time seen, with pages that overlap, or page after page by offset.
 */
export type Manner = "changes" | "replica" | "both" | "margin" | "offset"

/** Whether a reader reads by changes. */
export const isByChanges = (manner: Manner) => manner !== "margin" && manner !== "offset"

export interface Reader {
  readonly manner: Manner
  readonly room: number
}

export interface History {
  readonly seed: number
  readonly number: number
  readonly rooms: ReadonlyArray<Room>
  /** How many records each room has at first. */
  readonly counts: ReadonlyArray<number>
  readonly writers: number
  readonly readers: ReadonlyArray<Reader>
  readonly steps: ReadonlyArray<Step>
  /** How many milliseconds before the last time seen an overlapping reader starts. */
  readonly margin: number
  /** How far from the clock writers stamp at most, in milliseconds; not at all within a margin where it is undefined. */
  readonly reach: number | undefined
}

const some = (ids: ReadonlyArray<string> | undefined) => (ids === undefined ? "all" : ids.join(","))

const stampText = (stamp: Stamp) => (typeof stamp === "number" ? `clock ${stamp < 0 ? "" : "+"}${stamp} ms` : stamp)

const changeText: (change: Change) => string = Change.$match({
  Insert: ({ ids, stamp, onConflict }) => `insert ${some(ids)}, time ${stampText(stamp)}, on conflict ${onConflict}`,
  Copy: ({ ids, stamp }) => `copy ${some(ids)}, time ${stampText(stamp)}`,
  Update: ({ ids, stamp }) => `update ${some(ids)}, time ${stampText(stamp)}`,
  Nest: ({ ids, stamp }) => `update ${some(ids)} in many subtransactions, time ${stampText(stamp)}`,
  Touch: ({ ids }) => `update ${some(ids)} to what it is`,
  Mark: ({ ids, stamp }) => `mark ${some(ids)}, time ${stampText(stamp)}`,
  Delete: ({ ids }) => `delete ${some(ids)}`,
  Replace: ({ ids, stamp }) => `delete and insert ${some(ids)}, time ${stampText(stamp)}`,
  Rename: ({ from, to, stamp }) => `rename ${from} to ${to}, time ${stampText(stamp)}`,
  Move: ({ id, stamp }) => `give ${id} to the other organization, time ${stampText(stamp)}`,
  Truncate: () => "truncate"
})

const roomText = ({ organization, kind }: Room) => `${kind.table} of ${organization === 0 ? "A" : "B"}`

/** A step in words. */
export const stepText = ({ readers, rooms }: Pick<History, "readers" | "rooms">, step: Step): string => {
  const room = (at: number) => {
    const found = rooms[at]
    return found === undefined ? "?" : roomText(found)
  }
  const reader = (at: number) => {
    const found = readers[at]
    return found === undefined ? "?" : `reader ${at} (${found.manner}, ${room(found.room)})`
  }
  return Step.$match(step, {
    Begin: ({ writer, isolation, isAsynchronous, isReplicating }) =>
      `writer ${writer}: begin, ${isolation}${isAsynchronous ? ", asynchronous" : ""}${isReplicating ? ", as a replica" : ""}`,
    Commit: ({ writer }) => `writer ${writer}: commit`,
    Rollback: ({ writer }) => `writer ${writer}: rollback`,
    Savepoint: ({ writer }) => `writer ${writer}: savepoint`,
    RollbackTo: ({ writer }) => `writer ${writer}: rollback to savepoint`,
    Prepare: ({ writer }) => `writer ${writer}: prepare`,
    Finish: ({ writer, isCommit }) => `writer ${writer}: ${isCommit ? "commit" : "rollback"} prepared`,
    Write: ({ writer, room: at, change }) => `writer ${writer}: ${room(at)}: ${changeText(change)}`,
    Deliver: ({ room: at, invoices, lines }) =>
      `delivery: ${room(at)}: invoices ${some(invoices)}; lines ${some(lines)}`,
    Page: ({ reader: at, limit, isBeside, wait }) =>
      `${reader(at)}: page of ${limit}${isBeside ? ", beside" : ""}${wait > 0 ? `, waits ${wait} s` : ""}`,
    Save: ({ reader: at }) => `${reader(at)}: save`,
    Kill: ({ reader: at }) => `${reader(at)}: killed`,
    Pause: ({ millis }) => `pause of ${millis} ms`
  })
}

/** A history in words, but for its steps. */
export const heading = ({ seed, number, rooms, counts, writers, readers, margin, reach }: History) =>
  [
    `history ${number} of seed ${seed}: ${writers} writers`,
    ...rooms.map(
      (room, at) => `room ${at}: ${roomText(room)}, ${counts[at] ?? 0} records (${idOf(1)}, ${idOf(2)}, ...)`
    ),
    `readers: ${readers.map(({ manner, room }) => `${manner} of room ${room}`).join("; ")}`,
    `margin ${margin} ms; ${reach === undefined ? "writers stamp any time" : `writers stamp at most ${reach} ms off`}`
  ].join("\n")
