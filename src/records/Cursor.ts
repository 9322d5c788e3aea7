/** The cursor of a change feed: the position of a reader, as a short opaque text; and whether a server can resume it. */
import { hash } from "node:crypto"
import { Schema } from "effect"
import type { ChangesPage } from "./Pages.ts"

/** The place of a change in the order of a feed. */
export interface Place {
  readonly position: number
  readonly id: string
}

export interface Cursor extends Place {
  /** The token of the order that the position belongs to. */
  readonly feed: string
  /** The token of the newest mark that the reader's database had. */
  readonly mark: string
  /** The reader's snapshots saw no position at or above it. */
  readonly ceiling: number
  /** The byte of the write-ahead log that lies behind everything that the reader's snapshots saw. */
  readonly wal: number
  /** Until the first load is complete: the ceiling of the snapshot that it began with; then 0. */
  readonly target: number
  /**
   * Removals below it are of records that the reader never had: the lowest horizon of its pages. 0 once the reader has
   * passed it.
   */
  readonly floor: number
}

export interface Owner {
  readonly organization: string
  readonly resource: string
}

/** The place of a reader without a cursor. */
export const start = { position: -1, id: "" } as const

const radix = 36

const checksumLength = 8

/** A text with a checksum, which binds it to its owner. */
const sealed = (text: string, { organization, resource }: Owner): string => {
  const checksum = hash("sha256", JSON.stringify([organization, resource, text]), "base64url")
  return Buffer.from(text).toString("base64url") + checksum.slice(0, checksumLength)
}

const textOf = (cursor: string): string => Buffer.from(cursor.slice(0, -checksumLength), "base64url").toString()

/** True if a cursor was given out to an owner. */
export const isOf = (cursor: string, owner: Owner): boolean => sealed(textOf(cursor), owner) === cursor

/**
 * The text of a cursor. Version 2 is of a first load. After that it is version 1, which the release before reads as well:
 * there the first number was the timeline of the mark, which no release has as 0.
 */
export const encode = ({ ceiling, feed, floor, id, mark, position, target, wal }: Cursor, owner: Owner): string => {
  const [version, numbers] =
    target === 0 && floor === 0 ? [1, [0, ceiling, wal, position]] : [2, [target, floor, ceiling, wal, position]]
  return sealed([version, feed, mark, ...numbers.map((number) => number.toString(radix)), id].join("."), owner)
}

const token = /^[0-9a-f]{8}$/

const digits = /^(?:-1|[0-9a-z]{1,10})$/

/** The cursor of a text; undefined if it is none. */
export const decode = (cursor: string): Cursor | undefined => {
  const [version = "", feed = "", mark = "", ...rest] = textOf(cursor).split(".")
  const given = rest.splice(0, version === "1" ? 4 : 5)
  const id = rest.join(".")
  const isWhole =
    /^[12]$/.test(version) && token.test(feed) && token.test(mark) && given.every((text) => digits.test(text))
  // Postgres has no text with U+0000.
  if (!isWhole || rest.length === 0 || id.includes("\0")) return undefined
  const numbers = given.map((text) => Number.parseInt(text, radix))
  const [position = 0, wal = 0, ceiling = 0, ...loading] = numbers.toReversed()
  // Version 1 of the release before has a timeline here, and no target: a load began at or below the ceiling.
  const [floor = 0, target = 0] = version === "1" ? [0, loading[0] === 0 ? 0 : ceiling] : loading
  return { feed, mark, ceiling, wal, position, id, target, floor }
}

/** The progress of the transactions of a server. */
export const Progress = Schema.Struct({
  /** All changes below it are complete. */
  horizon: Schema.Int,
  /** The snapshot sees no change at or above it. */
  ceiling: Schema.Int,
  /** The number of transactions with an id at or above the ceiling. */
  inFlight: Schema.Int,
  /** True for a standby, which does not know what its primary has done since. */
  isStandby: Schema.Boolean
})
export type Progress = typeof Progress.Type

/** The feed of a resource in the snapshot of the statement that reads it. */
export const FeedSnapshot = Schema.Struct({
  ...Progress.fields,
  organization: Schema.String,
  token: Schema.String,
  /** The token of the newest mark; empty where there is none. */
  mark: Schema.String,
  /** Identifies the table and the run of the server. */
  run: Schema.String,
  /** The byte of the write-ahead log that lies behind everything that the snapshot sees. */
  wal: Schema.Int
})
export type FeedSnapshot = typeof FeedSnapshot.Type

/** The state of a feed, as far as it decides about a cursor. */
export const FeedState = Schema.Struct({
  snapshot: FeedSnapshot,
  /** True if the table is the one for which the order began. */
  isInPlace: Schema.Boolean,
  /** True if the newest mark is of this run of the server; on a standby, if there is one. */
  isMarked: Schema.Boolean,
  /** The ceiling that the mark of the cursor proves; null for an unknown mark. */
  proven: Schema.NullOr(Schema.Int),
  /** The byte of the write-ahead log up to which everything survived with the mark of the cursor; null where unknown. */
  durableUntil: Schema.NullOr(Schema.Int)
})
export type FeedState = typeof FeedState.Type

/**
 * True if the snapshot alone shows that a cursor can be resumed: nothing has changed since the feed was settled, and the
 * cursor is of this order and mark.
 */
export const isUnchanged = (settled: FeedSnapshot, now: FeedSnapshot, cursor: Cursor | undefined) =>
  settled.run === now.run &&
  settled.token === now.token &&
  settled.mark === now.mark &&
  settled.isStandby === now.isStandby &&
  (cursor === undefined ||
    (cursor.feed === now.token && cursor.mark === now.mark && (now.isStandby || cursor.position < now.ceiling)))

/**
 * The verdict about a cursor, or about a reader without one.
 *
 * - `Readable`: the changes after it can be read.
 * - `Behind`: a standby has not replayed what the reader has seen, or never will: its primary knows.
 * - `Expired`: the order has ended, or the reader has seen what did not survive a failover or a restore.
 * - `Unsettled`: the order has to restart first, or the run of the server has no mark yet.
 */
export type Verdict = "Readable" | "Behind" | "Expired" | "Unsettled"

export const verdictOf = (
  { durableUntil, isInPlace, isMarked, proven, snapshot }: FeedState,
  cursor: Cursor | undefined
): Verdict => {
  const { ceiling, isStandby, mark, token: feed } = snapshot
  if (!isInPlace || !isMarked) return "Unsettled"
  if (cursor === undefined) return "Readable"
  if (cursor.feed !== feed) return "Expired"
  // Only a database that was set back to an earlier state has not reached a position that a reader has seen.
  if (cursor.mark === mark) return !isStandby && cursor.position >= ceiling ? "Expired" : "Readable"
  if (proven === null) return isStandby ? "Behind" : "Expired"
  const hasSurvived = cursor.ceiling <= proven || (durableUntil !== null && cursor.wal <= durableUntil)
  return hasSurvived ? "Readable" : "Expired"
}

/** The cursor after a page, for a reader that had one or was at the start. */
export const cursorAfter = (
  before: Cursor | undefined,
  { hasMore, last }: Pick<ChangesPage, "hasMore" | "last">,
  { ceiling, horizon, mark, token: feed, wal }: FeedSnapshot
): Cursor => {
  const had = before ?? { ...start, target: ceiling, floor: horizon, ceiling: 0, wal: 0 }
  const floor = last === undefined ? had.floor : Math.min(had.floor, horizon)
  const hasPassed = !hasMore && horizon >= floor
  const { id, position } = last ?? had
  return {
    feed,
    mark,
    ceiling: Math.max(ceiling, had.ceiling),
    wal: Math.max(wal, had.wal),
    target: !hasMore && horizon >= had.target ? 0 : had.target,
    floor: hasPassed ? 0 : floor,
    // A record at the last position below the floor whose id is not ASCII may come once more.
    ...(hasPassed && position < floor - 1 ? { position: floor - 1, id: "~" } : { position, id })
  }
}
