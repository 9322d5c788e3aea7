/**
 * The clock of the changes. Once a second in each process it writes a mark, restarts the order where that is due, measures
 * the lag of the horizon, and wakes the readers that wait for changes. Where nothing happens, that is one statement.
 */
import { Context, Duration, Effect, Fiber, Layer, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { rowsOf } from "../database/Columns.ts"
import { type Database, isSameDatabase, RecordDatabase, TaskDatabase } from "../database/Database.ts"
import { inLongTransaction } from "../database/script.ts"
import * as Series from "../observability/Series.ts"
import * as Loop from "../process/Loop.ts"
import * as Time from "../process/Time.ts"
import { horizonOf, isHeldBack, Progress, readableIn, visibleIn } from "./FeedSnapshot.ts"
import { progressMembers, wokenQuery } from "./FeedQuery.ts"
import * as Waiters from "./Waiters.ts"

/** The number of connections that the process accepts: half of them may wait at once, and an eighth for one organization. */
export const Connections = Context.Reference<number>("practice-data/changes/ChangeClock/Connections", {
  defaultValue: () => 2000
})

/** The rows of a statement; undefined where it fails. */
const query = <A>(
  database: Database,
  rows: Effect.Effect<ReadonlyArray<A>, SqlError>,
  within = Duration.seconds(5)
): Effect.Effect<ReadonlyArray<A> | undefined> =>
  Effect.orElseSucceed(
    database.run({ key: "the changes", within, unavailable: () => undefined }, rows),
    () => undefined
  )

const wokenRows = rowsOf(Schema.Struct({ index: Schema.Int }))

const markRows = rowsOf(Schema.Struct({ has: Schema.Boolean }))

const ServerProgress = Schema.Struct({
  progress: Progress,
  system: Schema.String,
  tokens: Schema.String,
  /** False where the order of a feed is not what it was, such as after a restore. */
  isSettled: Schema.Boolean
})

const progressRows = rowsOf(ServerProgress)

const maxSamples = 1000

const nextOf = (progress: Progress) => visibleIn(progress).next + progress.inFlight

/** A clock over the primary of the records, and the database that they are read from. */
export class ChangeClock extends Context.Service<ChangeClock>()("practice-data/changes/ChangeClock", {
  make: Effect.gen(function* () {
    const tasks = yield* TaskDatabase
    const records = yield* RecordDatabase
    const databases: ReadonlyArray<Database> = isSameDatabase(tasks, records) ? [tasks] : [tasks, records]
    const waiters = Waiters.make(yield* Connections, (readers, now) =>
      Effect.map(query(records, wokenRows(wokenQuery(records, readers, now).unprepared)), (rows) =>
        rows?.map(({ index }) => index)
      )
    )
    const { gauge } = yield* Series.current
    const lagSeconds = gauge("practice_data_changes_lag_seconds")
    gauge("practice_data_changes_waiting").set(waiters.size)
    /** The next transaction id of the primary, at some times. */
    let samples: ReadonlyArray<{ readonly next: number; readonly at: number }> = []
    /** The time since which there is no primary to compare a standby with. */
    let noPrimarySince: number | undefined
    let last = 0
    let keeping: Fiber.Fiber<ReadonlyArray<typeof ServerProgress.Type | undefined>> | undefined

    const heldFor = Effect.fnUntraced(function* (progress: Progress) {
      const horizon = horizonOf(progress)
      const next = Math.max(nextOf(progress), progress.isStandby ? (samples.at(-1)?.next ?? Infinity) : 0)
      const now = yield* Time.monotonic
      // The transaction at the horizon began after the newest sample in which its id was not given.
      const before = samples.findLast((sample) => sample.next <= horizon) ?? samples[0]
      const seconds = Math.floor((now - (before?.at ?? noPrimarySince ?? now)) / 1000)
      // A standby that has all that its primary had, a second ago.
      return horizon >= next ? Math.max(0, seconds - 1) : Math.max(1, seconds)
    })

    const lag = (progress: Progress) => (isHeldBack(progress) ? heldFor(progress) : Effect.succeed(0))

    const sample = Effect.fnUntraced(function* (next: number, horizon: number) {
      const kept = samples.filter((_, index) => (samples[index + 1]?.next ?? Infinity) > horizon)
      const fewer = kept.length < maxSamples ? kept : kept.filter((_, index) => index % 2 === 0)
      samples = [...fewer, { next, at: yield* Time.monotonic }]
    })

    // Made once: each process runs it each second.
    const keepOf = (database: Database) => {
      const statement = database`
        select json_build_object(${database.literal(progressMembers)}) as progress, system_identifier::text as system,
          (select coalesce(string_agg(token, '' order by table_name), '') from change_feeds) as tokens,
          (select coalesce(bool_and(is_settled), true) from change_feed_states()) as "isSettled"
        from pg_control_system(), change_mark()`
      const mark = Effect.map(query(database, progressRows(statement)), (rows) => rows?.[0])
      return Effect.gen(function* () {
        yield* database.distribution.refresh
        // A distributed database has no order to keep.
        if (database.distribution.isDistributed() !== false) return undefined
        const marked = yield* mark
        if (marked === undefined || marked.isSettled || marked.progress.isStandby) return marked
        // It looks up the highest position of each organization, and notes each task of deletions: 500,000 took 25 s.
        yield* query(database, inLongTransaction(database, database`select change_begin()`), Duration.minutes(10))
        return yield* mark
      })
    }
    const keepAll = Effect.forEach(databases.map(keepOf), (each) => each)

    // Detached: a restart of the order takes longer than the request that waits for it.
    const keep = Effect.gen(function* () {
      keeping ??= yield* keepAll.pipe(Effect.ensuring(Effect.sync(() => (keeping = undefined))), Effect.forkDetach)
      return yield* Fiber.join(keeping)
    })

    const tick = Effect.gen(function* () {
      const marks = yield* keep
      const read = marks.at(-1)
      if (read === undefined) return lagSeconds.set(undefined)
      const { progress } = read
      const primary = progress.isStandby ? marks[0] : read
      noPrimarySince = primary === undefined ? (noPrimarySince ?? (yield* Time.monotonic)) : undefined
      if (primary?.system === read.system) yield* sample(nextOf(primary.progress), horizonOf(progress))
      last = yield* lag(progress)
      lagSeconds.set(last)
      yield* waiters.advance(readableIn(progress), read.tokens)
    })

    /** Deletes removals that no reader can need, some at a time. */
    const forget = Effect.suspend(() =>
      tasks.distribution.isDistributed() === false ? query(tasks, tasks`select change_forget()`) : Effect.void
    )

    const isOnPrimary = (condition: Fragment, otherwise: boolean) =>
      query(
        tasks,
        markRows(
          tasks`select exists (select from change_marks where ${condition}) as has where not pg_is_in_recovery()`
        )
      ).pipe(Effect.map((rows) => rows?.[0]?.has ?? otherwise))

    return {
      /** Restarts the order where that is due, and writes a mark. Does nothing where a database does not answer. */
      keep: Effect.asVoid(keep),
      /** The seconds for which changes are held back: of a standby, by its horizon. */
      lag,
      lastLag: Effect.sync(() => last),
      /** True if the primary has a mark, or there is no primary now. */
      hasMark: (token: string) => isOnPrimary(tasks`token = ${token}`, true),
      /** True if a mark is of the run of the primary. False if there is no primary now. */
      isOfRun: (token: string) =>
        isOnPrimary(
          tasks`token = ${token} and timeline = change_timeline() and started_at = pg_postmaster_start_time()`,
          false
        ),
      /** Waits for changes after a position. False on a timeout, where too many wait, if the client left, and once the process stops. */
      wait: waiters.wait,
      /** Ends all waiting, now and from now on. */
      stopWaiting: waiters.stop,
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
