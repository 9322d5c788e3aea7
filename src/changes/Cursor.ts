/** The cursor of a change feed: the walk of a reader, as an opaque text; and whether a server can resume it. */
import { hash } from "node:crypto"
import { Option, Schema } from "effect"
import { type FeedSnapshot, visibleIn } from "./FeedSnapshot.ts"
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

const isBelow = ({ walks }: Cursor, ceiling: number) => walks.every(({ place }) => place.position < ceiling)

/** True if a cursor needs no removals below a position, but for those of the transaction before it. */
export const needsNoneBelow = ({ walks }: Pick<Cursor, "walks">, position: number): boolean =>
  walks.every((walk) => Walk.lowestRemoval(walk) >= position - 1)

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
  const { keptFrom, mark, state } = snapshot
  if (state?.isInPlace !== true || !state.isMarked) return "Unsettled"
  if (cursor === undefined) return "Readable"
  if (cursor.order !== order || !needsNoneBelow(cursor, keptFrom)) return "Expired"
  // Only a database that was set back to an earlier state has not reached a position that a reader has seen.
  if (cursor.mark === mark) return isBelow(cursor, visibleIn(snapshot).next) ? "Readable" : "Expired"
  const { durableUntil, proven } = state
  if (proven === null) return "Expired"
  const hasSurvived = cursor.ceiling <= proven || (durableUntil !== null && cursor.wal <= durableUntil)
  return hasSurvived ? "Readable" : "Expired"
}

/** True if a snapshot alone shows that the cursor can be resumed: nothing has changed since the settled one, with its state. */
export const isUnchanged = (
  settled: FeedSnapshot,
  now: FeedSnapshot,
  order: string | undefined,
  cursor: Cursor | undefined
) =>
  settled.run === now.run &&
  settled.mark === now.mark &&
  Object.entries(now.tokens).every(([table, token]) => settled.tokens[table] === token) &&
  (cursor === undefined || cursor.mark === now.mark) &&
  judge({ ...now, state: settled.state }, order, cursor) === "Readable"
