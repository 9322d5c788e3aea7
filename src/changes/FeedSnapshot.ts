/** The snapshot of a feed in the statement that reads it. Positions are those of `Walk`. */
import { Schema } from "effect"
import { maximumRunning, type Visible } from "./Walk.ts"

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
  /** Identifies the tables and the run of the server. */
  run: Schema.String,
  /** The byte of the write-ahead log that lies behind everything that the snapshot sees. */
  wal: Schema.Int,
  /** The state of the feeds, as far as it decides about a cursor. Present if the read was given a mark. */
  state: Schema.optional(
    Schema.Struct({
      /** True if the tables are those for which the order began. */
      isInPlace: Schema.Boolean,
      /** True if the newest mark is of this run of the server, which is a primary. */
      isMarked: Schema.Boolean,
      /** The ceiling that the mark of the cursor proves; null for an unknown mark. */
      proven: Schema.NullOr(Schema.Int),
      /** The byte of the write-ahead log up to which everything survived with the mark of the cursor; null where unknown. */
      durableUntil: Schema.NullOr(Schema.Int)
    })
  )
})
export type FeedSnapshot = typeof FeedSnapshot.Type

type Progress = Pick<FeedSnapshot, "base" | "snapshot">

/** The transactions that a server shows, in positions. */
export const visibleIn = ({ base, snapshot }: Progress): Visible => {
  const [, next = "", running = ""] = snapshot.split(":")
  return { next: base + Number(next), running: running === "" ? [] : running.split(",").map((id) => base + Number(id)) }
}

/** The lowest id that is not known to have ended. */
export const lowestRunning = ({ base, snapshot }: Progress): number => base + Number(snapshot.split(":", 1)[0])

/** True if more transactions are running than a cursor has room for: the feed is read below the horizon only. */
export const isHeldBack = (progress: Progress): boolean => visibleIn(progress).running.length > maximumRunning

/** The transactions whose changes a reader gets. */
export const readableIn = (progress: Progress): Visible =>
  isHeldBack(progress) ? { next: lowestRunning(progress), running: [] } : visibleIn(progress)
