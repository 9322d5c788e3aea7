/**
 * The clock of the changes. Once a second in each process it writes a mark on the primary, and restarts the order where that
 * is due. Once a minute it deletes removals that no reader needs.
 */
import { Context, Duration, Effect, Layer, Ref, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { decodeRows } from "../database/Columns.ts"
import { TaskDatabase } from "../database/Database.ts"
import { inLongTransaction } from "../database/SqlFailure.ts"
import * as Loop from "../observability/Loop.ts"

/**
 * The state of the change feed.
 *
 * - `Served`: the order is in place.
 * - `Unsettled`: the order has to restart, as after a restore, and waits for indexes, triggers or a writer.
 * - `Distributed`: a distributed database has no common order.
 * - `Unknown`: the database has not answered.
 */
export type FeedState = "Served" | "Unsettled" | "Distributed" | "Unknown"

const markRows = decodeRows(Schema.Struct({ isSettled: Schema.Boolean }))

export class ChangeClock extends Context.Service<ChangeClock>()("practice-data/changes/ChangeClock", {
  make: Effect.gen(function* () {
    const database = yield* TaskDatabase
    const state = yield* Ref.make<FeedState>("Unknown")

    /** The rows of a statement; none where it fails. */
    const query = <A>(rows: Effect.Effect<ReadonlyArray<A>, SqlError>, within: Duration.Input = "5 seconds") =>
      Effect.orElseSucceed(
        database.run(
          { key: "the changes", within: Duration.fromInputUnsafe(within), unavailable: () => undefined },
          rows
        ),
        () => []
      )

    const mark = Effect.gen(function* () {
      const [marked] = yield* query(
        markRows(database`
          select coalesce((select bool_and(is_settled) from change_feed_states()), true) as "isSettled"
          from change_mark()`)
      )
      return marked === undefined ? "Unknown" : marked.isSettled ? "Served" : "Unsettled"
    })

    const keep = Effect.gen(function* () {
      yield* database.distribution.refresh
      const isDistributed = database.distribution.isDistributed()
      if (isDistributed !== false) return isDistributed === true ? "Distributed" : "Unknown"
      const marked = yield* mark
      if (marked !== "Unsettled") return marked
      // It looks up the highest position of each organization, and notes each task of deletions: 500,000 took 25 s.
      yield* query(inLongTransaction(database, database`select change_begin()`), "10 minutes")
      return yield* mark
    })

    const tick = Effect.flatMap(keep, (kept) => Ref.set(state, kept))

    /** Deletes removals that no reader can need, some at a time. */
    const forget = Effect.suspend(() =>
      database.distribution.isDistributed() === false ? query(database`select change_forget()`) : Effect.void
    )

    return {
      /** The state of the feed at the last tick. */
      state: Ref.get(state),
      /** Restarts the order where that is due, and writes a mark. Does nothing where the database does not answer. */
      tick,
      /** Ticks without end. */
      watch: Effect.all(
        [
          Loop.forever("The clock of the changes", Effect.andThen(tick, Effect.sleep("1 second"))),
          Loop.forever("The retention of removals", Effect.andThen(forget, Effect.sleep("1 minute")))
        ],
        { concurrency: "unbounded", discard: true }
      )
    }
  })
}) {
  static readonly layer = Layer.effect(ChangeClock, ChangeClock.make)
}
