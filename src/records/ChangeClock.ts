/**
 * Watches the order of changes, once a second in each process: begins it anew where that is due, writes its marks, and
 * knows for how long a transaction has held the horizon back.
 */
import { Clock, Context, Duration, Effect, Layer, Schedule } from "effect"
import * as ChangeWaiters from "./ChangeWaiters.ts"
import { type Database, isSameDatabase, RecordDatabase, TaskDatabase } from "../database/Database.ts"

/** How far the transactions of a server have come. */
export interface Progress {
  readonly horizon: number
  readonly ceiling: number
  readonly inFlight: number
}

/** The next id that a transaction got, at a time. */
interface Sample {
  readonly next: number
  readonly at: number
}

const mostSamples = 1000

const within = Duration.seconds(5)

export class ChangeClock extends Context.Service<
  ChangeClock,
  {
    /** Begins the order anew where that is due, and writes a mark. A database that does not answer has neither. */
    readonly keep: Effect.Effect<void>
    /**
     * For how many seconds the horizon has been held back; 0 only if the changes below the horizon are all that there
     * are.
     */
    readonly lag: (progress: Progress) => Effect.Effect<number>
    /** The same, when it was last looked at. */
    readonly lastLag: Effect.Effect<number>
    /** Waits for changes after those that were seen; false where the time was over first, or the process stops. */
    readonly wait: (seen: ChangeWaiters.Seen, within: Duration.Duration) => Effect.Effect<boolean>
    /** Ends all waiting, now and from now on. */
    readonly stopWaiting: Effect.Effect<void>
    /** Watches, without end. */
    readonly watch: Effect.Effect<never>
  }
>()("practice-data/records/ChangeClock") {
  static readonly layer = Layer.effect(
    ChangeClock,
    Effect.map(Effect.all([TaskDatabase, RecordDatabase]), ([tasks, records]) => make(tasks, records))
  )
}

/**
 * A clock over databases.
 *
 * @param tasks the primary of the records
 * @param records what the records are read from
 */
export const make = (tasks: Database, records: Database): ChangeClock["Service"] => {
  const databases: ReadonlyArray<Database> = isSameDatabase(tasks, records) ? [tasks] : [tasks, records]
  let samples: ReadonlyArray<Sample> = []
  let last = 0

  const waiters = ChangeWaiters.make(records)

  const ask = <A, E>(database: Database, statement: Effect.Effect<ReadonlyArray<A>, E>) =>
    Effect.orElseSucceed(
      database.run({ key: "the changes", within, unavailable: () => undefined }, statement),
      () => undefined
    )

  const lag = Effect.fnUntraced(function* ({ ceiling, horizon, inFlight }: Progress) {
    const next = ceiling + inFlight
    if (horizon >= next) return 0
    const now = yield* Clock.currentTimeMillis
    // The transaction at the horizon began after the newest sample in which its id was not given.
    const before = samples.findLast((sample) => sample.next <= horizon) ?? samples[0]
    const seconds = Math.floor((now - (before?.at ?? now)) / 1000)
    return horizon >= ceiling ? seconds : Math.max(1, seconds)
  })

  const observe = Effect.fnUntraced(function* (progress: Progress) {
    const { ceiling, horizon, inFlight } = progress
    const sample = { next: ceiling + inFlight, at: yield* Clock.currentTimeMillis }
    const isNeeded = (_: Sample, index: number) => (samples[index + 1]?.next ?? Infinity) > horizon
    const kept = samples.filter(isNeeded)
    samples = [...(kept.length < mostSamples ? kept : kept.filter((_, index) => index % 2 === 0)), sample]
    last = yield* lag(progress)
    yield* waiters.look(horizon, (statement) => ask(records, statement))
  })

  const keep = Effect.forEach(
    databases,
    (database) =>
      Effect.andThen(ask(database, database`select change_begin()`), ask(database, database`select change_mark()`)),
    { discard: true }
  )
  const look = ask(
    records,
    records<Progress>`
      select change_horizon()::float8 as horizon, change_ceiling()::float8 as ceiling,
        change_in_flight() as "inFlight"`
  ).pipe(Effect.flatMap((rows) => Effect.forEach(rows ?? [], observe, { discard: true })))

  return {
    keep,
    lag,
    lastLag: Effect.sync(() => last),
    wait: waiters.wait,
    stopWaiting: waiters.stop,
    watch: Effect.andThen(keep, look).pipe(Effect.repeat(Schedule.spaced("1 second")), Effect.andThen(Effect.never))
  }
}
