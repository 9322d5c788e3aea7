/** The cursor of a change feed: the walk of a reader, as an opaque text; and whether a server can resume it. */
import { hash } from "node:crypto"
import { Option, Schema } from "effect"
import * as Walk from "./Walk.ts"

/** As Postgres makes it: `left(gen_random_uuid()::text, 8)`. */
const Token = Schema.String.check(Schema.isPattern(/^[0-9a-f]{8}$/))

const Cursor = Schema.Struct({
  /** The token of the order that the positions belong to. */
  order: Token,
  /** The token of the newest mark that the reader's database had. */
  mark: Token,
  /** The changes that the reader has seen are below it. */
  ceiling: Walk.Position,
  /** The byte of the write-ahead log that lies behind the changes that the reader has seen. */
  wal: Walk.Position,
  /** The walk of each resource. Resources that were loaded at the same time share one. */
  walks: Schema.Array(Walk.Walk).check(Schema.isMaxLength(20))
})
export type Cursor = typeof Cursor.Type

interface Owner {
  readonly organization: string
  /** The resource; `*` for the feed of all. */
  readonly resource: string
}

const checksumLength = 8

/** A text with a checksum, which binds it to its owner. */
const sealed = (text: string, { organization, resource }: Owner): string => {
  const checksum = hash("sha256", JSON.stringify([organization, resource, text]), "base64url")
  return Buffer.from(text).toString("base64url") + checksum.slice(0, checksumLength)
}

const textOf = (cursor: string): string => Buffer.from(cursor.slice(0, -checksumLength), "base64url").toString()

/** True if a cursor was given out to an owner. */
export const isOf = (cursor: string, owner: Owner): boolean => sealed(textOf(cursor), owner) === cursor

const isPosition = Schema.is(Walk.Position)

/** A cursor whose running transactions are differences. */
const decodeText = Schema.decodeOption(Schema.fromJsonString(Cursor))

/** Each running transaction as the difference to the one before. */
const differences = (walk: Walk.Walk): Walk.Walk => ({
  ...walk,
  running: walk.running.map((position, index, all) => position - (all[index - 1] ?? 0))
})

const sums = (walk: Walk.Walk): Walk.Walk => {
  let sum = 0
  return { ...walk, running: walk.running.map((difference) => (sum += difference)) }
}

/** The most transactions of all walks together: each is a range that is read. */
const maximumRanges = 2 * Walk.maximumRunning

/** The walks that a cursor has room for. The resources of the others begin with a reset. */
export const fitting = (walks: ReadonlyArray<Walk.Walk>): ReadonlyArray<Walk.Walk> => {
  let left = maximumRanges
  return walks.filter(({ running }) => (left -= running.length) >= 0)
}

/** The text of a cursor. */
export const encode = (cursor: Cursor, owner: Owner): string =>
  sealed(JSON.stringify({ ...cursor, walks: cursor.walks.map(differences) }), owner)

/** The longest text that is read, so that one that nobody gave out costs no more than any other. */
const longest = 128 * 1024

/** The cursor of a text; undefined if it is none. */
export const decode = (text: string): Cursor | undefined => {
  if (text.length > longest) return undefined
  const found = Option.getOrUndefined(decodeText(textOf(text)))
  if (found === undefined) return undefined
  const walks = found.walks.map(sums)
  const isValid = fitting(walks).length === walks.length && walks.every(({ running }) => running.every(isPosition))
  return isValid ? { ...found, walks } : undefined
}

export const Progress = Schema.Struct({
  /** The position of the transaction id 0. */
  base: Schema.Int,
  /** As Postgres writes it: `10:20:10,14`. */
  snapshot: Schema.String,
  /** The number of transactions with an id at or above the end of the snapshot. */
  inFlight: Schema.Int,
  /** True for a standby, which does not know what its primary has done since, nor which transactions are running. */
  isStandby: Schema.Boolean
})
export type Progress = typeof Progress.Type

/** The feeds in the snapshot of the statement that reads them. */
export const FeedSnapshot = Schema.Struct({
  ...Progress.fields,
  organization: Schema.String,
  /** The token of the feed of each table. */
  tokens: Schema.Record(Schema.String, Schema.String),
  /** The token of the newest mark; empty where there is none. */
  mark: Schema.String,
  /** Every transaction below it had ended when the newest mark was written. */
  marked: Schema.Int,
  /** Removals below it have been deleted. */
  keptFrom: Schema.Int,
  /** Identifies the tables and the run of the server. */
  run: Schema.String,
  /** The byte of the write-ahead log that lies behind everything that the snapshot sees. */
  wal: Schema.Int,
  /** The state of the feeds, as far as it decides about a cursor. Present if the read was given a mark. */
  state: Schema.optional(
    Schema.Struct({
      /** True if the tables are those for which the order began. */
      isInPlace: Schema.Boolean,
      /** True if the newest mark is of this run of the server; on a standby, if there is one. */
      isMarked: Schema.Boolean,
      /** The ceiling that the mark of the cursor proves; null for an unknown mark. */
      proven: Schema.NullOr(Schema.Int),
      /** The byte of the write-ahead log up to which everything survived with the mark of the cursor; null where unknown. */
      durableUntil: Schema.NullOr(Schema.Int)
    })
  )
})
export type FeedSnapshot = typeof FeedSnapshot.Type

/** The transactions that a server shows, in positions. */
export const shownBy = ({ base, snapshot }: Pick<Progress, "base" | "snapshot">): Walk.Snapshot => {
  const [, next = "", running = ""] = snapshot.split(":")
  return { next: base + Number(next), running: running === "" ? [] : running.split(",").map((id) => base + Number(id)) }
}

/** The lowest id that is not known to have ended: of a standby, that of its snapshot. */
export const horizonOf = ({ base, snapshot }: Progress): number => base + Number(snapshot.split(":", 1)[0])

/**
 * True if the feed is read below the horizon only: a standby does not know which transactions are running, and a cursor has
 * no room for more of them.
 */
export const isHeldBack = (progress: Progress): boolean =>
  progress.isStandby || shownBy(progress).running.length > Walk.maximumRunning

/** The transactions whose changes a reader gets. */
export const readableIn = (progress: Progress): Walk.Snapshot =>
  isHeldBack(progress) ? { next: horizonOf(progress), running: [] } : shownBy(progress)

const isBelow = ({ walks }: Cursor, ceiling: number) => walks.every(({ place }) => place.position < ceiling)

/** True if a cursor needs no removals below a position, but for those of the transaction before it. */
export const isFrom = ({ walks }: Pick<Cursor, "walks">, position: number): boolean =>
  walks.every((walk) => Walk.lowestRemoval(walk) >= position - 1)

/** True if the snapshot alone shows that a cursor of an order can be resumed: since the feeds were settled, all is as it was. */
export const isUnchanged = (
  settled: FeedSnapshot,
  now: FeedSnapshot,
  order: string | undefined,
  cursor: Cursor | undefined
) =>
  settled.run === now.run &&
  settled.mark === now.mark &&
  settled.isStandby === now.isStandby &&
  Object.entries(now.tokens).every(([table, token]) => settled.tokens[table] === token) &&
  (cursor === undefined ||
    (cursor.order === order &&
      cursor.mark === now.mark &&
      isFrom(cursor, now.keptFrom) &&
      (now.isStandby || isBelow(cursor, shownBy(now).next))))

/**
 * The verdict about a cursor, or about a reader without one.
 *
 * - `Readable`: the changes after it can be read.
 * - `Behind`: a standby has not replayed what the reader has seen, or never will: its primary knows.
 * - `Expired`: the order has ended, the reader needs removals that are deleted, or it has seen what did not survive a
 *   failover or a restore.
 * - `Unsettled`: the order has to restart first, or the run of the server has no mark yet.
 */
export type Verdict = "Readable" | "Behind" | "Expired" | "Unsettled"

export const verdictOf = (snapshot: FeedSnapshot, order: string | undefined, cursor: Cursor | undefined): Verdict => {
  const { isStandby, keptFrom, mark, state } = snapshot
  if (state?.isInPlace !== true || !state.isMarked) return "Unsettled"
  if (cursor === undefined) return "Readable"
  if (cursor.order !== order || !isFrom(cursor, keptFrom)) return "Expired"
  // Only a database that was set back to an earlier state has not reached a position that a reader has seen.
  if (cursor.mark === mark) return isStandby || isBelow(cursor, shownBy(snapshot).next) ? "Readable" : "Expired"
  const { durableUntil, proven } = state
  if (proven === null) return isStandby ? "Behind" : "Expired"
  const hasSurvived = cursor.ceiling <= proven || (durableUntil !== null && cursor.wal <= durableUntil)
  return hasSurvived ? "Readable" : "Expired"
}
