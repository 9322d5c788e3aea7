/**
 * The cursor of a change feed: the walk of a reader, as an opaque text; and the snapshot of a feed, which decides if a
 * server can resume it. Positions are those of `Walk`.
 */
import { hash } from "node:crypto"
import { Option, Schema } from "effect"
import * as Walk from "./Walk.ts"

/** The feeds in the snapshot of the statement that reads them. */
export const FeedSnapshot = Schema.Struct({
  /** The position of the transaction id 0. */
  base: Schema.Int,
  /** As Postgres writes it: `10:20:10,14`. */
  snapshot: Schema.String,
  organization: Schema.String,
  /** The token of the feed of each table. */
  tokens: Schema.Record(Schema.String, Schema.String),
  /** The token of the newest mark; empty where there is none. */
  mark: Schema.String,
  /** Every transaction below it had ended when the newest mark was written. */
  marked: Schema.Int,
  /** Removals below it have been deleted. */
  keptFrom: Schema.Int,
  /** The byte of the write-ahead log that lies behind everything that the snapshot sees. */
  wal: Schema.Int,
  /** True if the tables are those for which the order began. */
  isInPlace: Schema.Boolean,
  /** True if the newest mark is of this run of the server, which is a primary. */
  isMarked: Schema.Boolean,
  /** The ceiling that the mark of the cursor proves; null for an unknown mark. */
  proven: Schema.NullOr(Schema.Int),
  /** The byte of the write-ahead log up to which everything survived with the mark of the cursor; null where unknown. */
  durableUntil: Schema.NullOr(Schema.Int)
})
export type FeedSnapshot = typeof FeedSnapshot.Type

/** The transactions that a server shows, in positions. */
export const visibleIn = ({ base, snapshot }: FeedSnapshot): Walk.Visible => {
  const [, next = "", running = ""] = snapshot.split(":")
  return { next: base + Number(next), running: running === "" ? [] : running.split(",").map((id) => base + Number(id)) }
}

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

const checksumLength = 8

/** A text with a checksum, which binds it to its organization. */
const sealed = (text: string, organization: string): string => {
  const checksum = hash("sha256", JSON.stringify([organization, text]), "base64url")
  return Buffer.from(text).toString("base64url") + checksum.slice(0, checksumLength)
}

const unsealed = (cursor: string): string => Buffer.from(cursor.slice(0, -checksumLength), "base64url").toString()

/** True if a cursor was given out to an organization. */
export const belongsTo = (cursor: string, organization: string): boolean =>
  sealed(unsealed(cursor), organization) === cursor

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
export const encode = (cursor: Cursor, organization: string): string =>
  sealed(JSON.stringify({ ...cursor, walks: cursor.walks.map(differences) }), organization)

/** The longest text that is decoded: a forged one costs no more than any other. */
const longest = 128 * 1024

/** The cursor of a text; undefined if it is none. */
export const decode = (text: string): Cursor | undefined => {
  if (text.length > longest) return undefined
  const cursor = Option.getOrUndefined(decodeText(unsealed(text)))
  if (cursor === undefined) return undefined
  const walks = cursor.walks.map(sums)
  const isValid = fitting(walks).length === walks.length && walks.every(({ running }) => running.every(isPosition))
  return isValid ? { ...cursor, walks } : undefined
}

/**
 * The verdict about a cursor, or about a reader without one.
 *
 * - `Readable`: the changes after it can be read.
 * - `Expired`: the order has ended, the reader needs removals that are deleted, or it has seen what did not survive a
 *   failover or a restore.
 * - `Unsettled`: the order has to restart first, or the run of the server has no mark yet.
 */
export type Verdict = "Readable" | "Expired" | "Unsettled"

export const judge = (snapshot: FeedSnapshot, order: string | undefined, cursor: Cursor | undefined): Verdict => {
  const { durableUntil, isInPlace, isMarked, keptFrom, mark, proven } = snapshot
  if (!isInPlace || !isMarked) return "Unsettled"
  if (cursor === undefined) return "Readable"
  // Removals of the transaction before are kept too.
  const needsDeleted = cursor.walks.some((walk) => Walk.lowestRemoval(walk) < keptFrom - 1)
  if (cursor.order !== order || needsDeleted) return "Expired"
  // Only a database that was set back to an earlier state has not reached a position that a reader has seen.
  const { next } = visibleIn(snapshot)
  if (cursor.mark === mark) return cursor.walks.every(({ place }) => place.position < next) ? "Readable" : "Expired"
  if (proven === null) return "Expired"
  const hasSurvived = cursor.ceiling <= proven || (durableUntil !== null && cursor.wal <= durableUntil)
  return hasSurvived ? "Readable" : "Expired"
}
