/**
 * Watches the order of changes, once a second in each process: begins it anew where that is due, writes its marks, and
 * knows for how long a transaction has held the horizon back.
 */
import { Clock, Context, Duration, Effect, Fiber, Layer, Schedule } from "effect"
import * as ChangeWaiters from "./ChangeWaiters.ts"
import * as Series from "../observability/Series.ts"
import { type Database, isSameDatabase, RecordDatabase, TaskDatabase } from "../database/Database.ts"

/** How far the transactions of a server have come. */
export interface Progress {
  readonly horizon: number
  readonly ceiling: number
  readonly inFlight: number
  /** Whether it is a standby, which does not know what its primary has done since. */
  readonly isStandby: boolean
}

/** What a database says of itself. */
interface Seen extends Progress {
  readonly system: string
}

/** The next id that a transaction of the primary got, at a time. */
interface Sample {
  readonly next: number
  readonly at: number
}

const mostSamples = 1000

const within = Duration.seconds(5)

/** To begin the order anew, the highest position of each organization is looked for. */
const beginWithin = Duration.minutes(1)

/** How many connections the process accepts, of which waiting readers may take a part. */
export const Connections = Context.Reference<number>("practice-data/records/ChangeClock/Connections", {
  defaultValue: () => 2000
})

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
    /** Whether the primary has a mark; true where it cannot say. */
    readonly hasMark: (token: string) => Effect.Effect<boolean>
    /** The same, when it was last looked at. */
    readonly lastLag: Effect.Effect<number>
    /** As `ChangeWaiters` waits. */
    readonly wait: (seen: ChangeWaiters.Seen, within: Duration.Duration) => Effect.Effect<boolean>
    /** Ends all waiting, now and from now on. */
    readonly stopWaiting: Effect.Effect<void>
    /** Watches, without end. */
    readonly watch: Effect.Effect<never>
  }
>()("practice-data/records/ChangeClock") {
  static readonly layer = Layer.effect(
    ChangeClock,
    Effect.gen(function* () {
      const { gauge } = yield* Series.current
      return make(
        yield* TaskDatabase,
        yield* RecordDatabase,
        {
          lag: gauge("practice_data_changes_lag_seconds"),
          waiting: gauge("practice_data_changes_waiting")
        },
        ChangeWaiters.limitsFor(yield* Connections)
      )
    })
  )
}

const nextOf = ({ ceiling, inFlight }: Progress) => ceiling + inFlight

const none = Effect.succeed(0)

const ask = <A, E>(database: Database, statement: Effect.Effect<ReadonlyArray<A>, E>, time = within) =>
  Effect.orElseSucceed(
    database.run({ key: "the changes", within: time, unavailable: () => undefined }, statement),
    () => undefined
  )

/** What is measured: for how long changes are held back, and how many requests wait for them. */
export interface Gauges {
  readonly lag: Series.Gauge
  readonly waiting: Series.Gauge
}

/**
 * A clock over databases.
 *
 * @param tasks the primary of the records
 * @param records what the records are read from
 */
export const make = (
  tasks: Database,
  records: Database,
  gauges: Gauges = { lag: Series.unseen, waiting: Series.unseen },
  limits = ChangeWaiters.limitsFor(2000)
): ChangeClock["Service"] => {
  const databases: ReadonlyArray<Database> = isSameDatabase(tasks, records) ? [tasks] : [tasks, records]
  let samples: ReadonlyArray<Sample> = []
  let last = 0

  const waiters = ChangeWaiters.make(records, gauges.waiting, limits)

  const heldFor = Effect.fnUntraced(function* (progress: Progress) {
    const { ceiling, horizon, isStandby } = progress
    const newest = samples.at(-1)
    const next = Math.max(nextOf(progress), isStandby ? (newest?.next ?? Infinity) : 0)
    const now = yield* Clock.currentTimeMillis
    // What is at the horizon began after the newest sample in which its id was not given.
    const before = samples.findLast((sample) => sample.next <= horizon) ?? samples[0]
    const seconds = Math.floor((now - (before?.at ?? now)) / 1000)
    // Of a standby that has all that its primary had, a second ago.
    if (horizon >= next) return Math.max(0, seconds - 1)
    return horizon >= ceiling && !isStandby ? seconds : Math.max(1, seconds)
  })

  const lag = (progress: Progress) =>
    !progress.isStandby && progress.horizon >= nextOf(progress) ? none : heldFor(progress)

  const observe = Effect.fnUntraced(function* (progress: Progress, next: number | undefined) {
    if (next !== undefined) {
      const sample = { next, at: yield* Clock.currentTimeMillis }
      const isNeeded = (_: Sample, index: number) => (samples[index + 1]?.next ?? Infinity) > progress.horizon
      const kept = samples.filter(isNeeded)
      samples = [...(kept.length < mostSamples ? kept : kept.filter((_, index) => index % 2 === 0)), sample]
    }
    last = yield* lag(progress)
    gauges.lag.set(last)
    yield* waiters.look(progress.horizon, (statement) => ask(records, statement))
  })

  const keepAll = Effect.forEach(
    databases,
    (database) =>
      Effect.gen(function* () {
        yield* database.distribution.refresh
        // A distributed database has no order to keep.
        if (database.distribution.isDistributed() !== false) return
        yield* ask(database, database`select change_begin()`, beginWithin)
        yield* ask(database, database`select change_mark()`)
      }),
    { discard: true }
  )
  let keeping: Fiber.Fiber<void> | undefined
  // Whoever waits for it may leave: a large database takes longer than a request.
  const keep = Effect.gen(function* () {
    keeping ??= yield* Effect.forkDetach(
      Effect.ensuring(
        keepAll,
        Effect.sync(() => (keeping = undefined))
      )
    )
    yield* Fiber.await(keeping)
  })
  const seen = (database: Database) =>
    Effect.map(
      ask(
        database,
        database<Seen>`
        select change_horizon()::float8 as horizon, change_ceiling()::float8 as ceiling,
          change_in_flight() as "inFlight", pg_is_in_recovery() as "isStandby", system_identifier::text as system
        from pg_control_system()`
      ),
      (rows) => rows?.[0]
    )
  const look = Effect.gen(function* () {
    const read = records.distribution.isDistributed() === true ? undefined : yield* seen(records)
    if (read === undefined) return gauges.lag.set(undefined)
    const primary = read.isStandby && databases.length > 1 ? yield* seen(tasks) : read
    yield* observe(read, primary?.system === read.system ? nextOf(primary) : undefined)
  })

  return {
    keep,
    lag,
    hasMark: (token) =>
      Effect.map(
        ask(
          tasks,
          tasks<{ has: boolean }>`
            select exists (select from change_marks where token = ${token}) as has where not pg_is_in_recovery()`
        ),
        (rows) => rows?.[0]?.has ?? true
      ),
    lastLag: Effect.sync(() => last),
    wait: waiters.wait,
    stopWaiting: waiters.stop,
    watch: Effect.andThen(keep, look).pipe(Effect.repeat(Schedule.spaced("1 second")), Effect.andThen(Effect.never))
  }
}
