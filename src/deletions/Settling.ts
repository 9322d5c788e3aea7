/**
 * Settling: a transaction that looked for facts of deletions before they were committed may still bring a row that they
 * delete. Whoever looks later sees them. So the worker notes the transactions that run after the facts were committed, and
 * applies the facts again as these end, and once more when all have. Nobody waits for anybody: a loader may run for hours.
 *
 * Facts are settled by task: `unsettled_since` of a task is set with its facts, and when an operator undoes some. One worker
 * settles, under a lease. What it has noted is lost with it: the next one notes the transactions of its own time.
 */
import { randomUUID } from "node:crypto"
import { Array, Duration, Effect, Layer, Predicate, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { rowsOf, textsOf } from "../database/Columns.ts"
import { TaskDatabase } from "../database/Database.ts"
import { inTransaction } from "../database/SqlFailure.ts"
import * as Loop from "../process/Loop.ts"
import * as Deletion from "./Deletion.ts"
import { failureKind } from "./Retries.ts"
import { SchedulerUnavailable } from "./Scheduler.ts"
import { keyOf, TaskId } from "./WorkerTasks.ts"

const Unsettled = Schema.Struct({
  ...TaskId.fields,
  /** The value of `unsettled_since`, as text: exact to the microsecond. */
  since: Schema.String,
  /** True if facts changed after the task was completed or cancelled, so that no worker has applied them. */
  isReopened: Schema.Boolean
})
type Unsettled = typeof Unsettled.Type

const unsettled = rowsOf(Unsettled)
const tasksOf = rowsOf(TaskId)
const identify = (tasks: ReadonlyArray<Unsettled>) => [
  tasks.map(({ organization }) => organization),
  tasks.map(({ taskId }) => taskId)
]
const versionOf = (task: Unsettled) => `${keyOf(task)}/${task.since}`

/** Tasks whose facts were committed, and the transactions that may have missed them. */
interface Round {
  readonly tasks: ReadonlyArray<Unsettled>
  readonly awaited: ReadonlySet<string>
  /** True if these are prepared transactions, of which a round waits only for those that there are at the end. */
  readonly isLast: boolean
  /** The tasks some of whose rows were still to be changed: others held them, who may have ended since. */
  readonly left: ReadonlyArray<Unsettled>
}

/**
 * The most tasks that are noted at once. The others are noted when these are settled, but for the newest ones that were
 * reopened: an undoing does not wait for a long transaction.
 */
const mostNoted = 10_000

/** The tasks whose facts are applied in one transaction. */
const applied = 20

/** The time in which another worker settles after this one has died. */
const lease = "10 seconds"

/** The time between steps: while transactions are awaited, while none are, and where tables have no triggers. */
const pauses = { awaiting: Duration.millis(250), idle: Duration.seconds(1), distributed: Duration.seconds(10) }

const setOf = (rows: Effect.Effect<ReadonlyArray<unknown>, SqlError>) =>
  Effect.map(textsOf(rows), (texts) => new Set(texts))

/** Settles what there is to settle, step by step. A step returns the time until the next one. */
export const make = Effect.gen(function* () {
  const sql = yield* TaskDatabase
  const holder = randomUUID()
  let rounds: ReadonlyArray<Round> = []

  // A lease that lasts longer is of a time before the clock of the database was set back.
  const isSettler = Effect.map(
    sql`
      update deletion_settler set holder = ${holder}::uuid, until = clock_timestamp() + ${lease}::interval
      where holder = ${holder}::uuid or until not between clock_timestamp() and clock_timestamp() + ${lease}::interval
      returning 1`,
    (rows) => rows.length > 0
  )

  /** Moves the verdicts of writers to their facts. An invoice that is deleted from now on has lines to be marked. */
  const fold = sql`
    with arrived as (delete from deletion_arrivals returning *),
    found as (
      select distinct on (organization_id, task_id, kind, item) arrived.*, d.holds as held
      from arrived join deletions d using (organization_id, task_id, kind, item)
    ),
    judged as (
      update deletions d set verdict = found.verdict, holds = found.verdict = 'deleted' from found
      where d.organization_id = found.organization_id and d.task_id = found.task_id and d.kind = found.kind
        and d.item = found.item and d.verdict = 'not_found'
      returning d.organization_id, d.task_id, d.holds and not found.held as "isNew"
    )
    update deletion_tasks t set unsettled_since = clock_timestamp()
    from (select distinct organization_id, task_id from judged where "isNew") task
    where t.organization_id = task.organization_id and t.id = task.task_id`

  /** Transactions of this database that may write: those that run, without autovacuums, which have no user; and prepared ones. */
  const running = setOf(sql`
    select l.virtualxid as text from pg_locks l join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'virtualxid' and l.granted and l.pid <> pg_backend_pid()
      and a.usesysid is not null and a.datid = (select oid from pg_database where datname = current_database())`)
  const prepared = setOf(sql`
    select 'prepared ' || gid as text from pg_prepared_xacts where database = current_database()`)

  /** Each part of a step has a time of its own: a step of many tasks takes as long as it takes. */
  const inTime = <A>(statements: Effect.Effect<A, SqlError>) =>
    sql.run({ key: "settling", within: Duration.seconds(65), unavailable: SchedulerUnavailable.from }, statements)

  const applyAll = (statements: ReadonlyArray<string>, parameters: ReadonlyArray<unknown>, timeout?: string) =>
    inTransaction(
      sql,
      Effect.andThen(
        // The database may keep the times of writers: a mark has its own, for those who read by time.
        sql.unsafe(`${Deletion.transactionSettings(timeout)}, set_config('practice_data.keep_times', 'off', true)`),
        Effect.forEach(statements, (text) => sql.unsafe(text, parameters))
      )
    )

  const statements = [...Deletion.acrossOrganizations.settle, Deletion.acrossOrganizations.unsettled]

  /**
   * Applies the facts of tasks, of each by itself where that fails or takes long. Returns the tasks some of whose rows are
   * still to be marked: others hold them, or a trigger of others refuses.
   */
  const apply = (tasks: ReadonlyArray<Unsettled>): Effect.Effect<ReadonlyArray<Unsettled>, SchedulerUnavailable> =>
    applyAll(statements, identify(tasks), tasks.length > 1 ? "5s" : undefined).pipe(
      Effect.map((results) => results.at(-1) ?? []),
      tasksOf,
      Effect.map((held) => {
        const left = new Set(held.map(keyOf))
        return tasks.filter((task) => left.has(keyOf(task)))
      }),
      Effect.catchIf(
        (error) => failureKind(error) !== "outage",
        () => Effect.succeed(tasks.length > 1 ? undefined : tasks)
      ),
      // The lease is renewed, lest another worker does the same beside this one.
      (applying) => inTime(Effect.andThen(isSettler, applying)),
      Effect.filterOrElse(Predicate.isNotUndefined, () => applyEach(tasks.map(Array.of)))
    )
  const applyEach = (groups: ReadonlyArray<ReadonlyArray<Unsettled>>) =>
    Effect.map(Effect.forEach(groups, apply), Array.flatten)
  const applyInTurn = (tasks: ReadonlyArray<Unsettled>) => applyEach(Array.chunksOf(tasks, applied))

  const settle = (tasks: ReadonlyArray<Unsettled>) =>
    sql.unsafe(
      `update deletion_tasks t set unsettled_since = null
       from unnest($1::text[], $2::uuid[], $3::timestamptz[]) as settled (organization_id, id, since)
       where t.organization_id = settled.organization_id and t.id = settled.id and t.unsettled_since = settled.since`,
      [...identify(tasks), tasks.map(({ since }) => since)]
    )

  const noted = (order: "asc" | "desc") => sql`(
    select organization_id as organization, id as "taskId", unsettled_since::text as since,
      coalesce(unsettled_since > finished_at, false) or state = 'cancelled' as "isReopened"
    from deletion_tasks where unsettled_since is not null
    order by unsettled_since ${sql.literal(`${order} limit ${mostNoted}`)}
  )`

  /** Reads what is to be settled; undefined if there is nothing, or another worker settles. */
  const look = Effect.gen(function* () {
    const [work] = yield* sql`
      select where exists (select from deletion_tasks where unsettled_since is not null)
        or exists (select from deletion_arrivals)`
    if (work === undefined || !(yield* isSettler)) return undefined
    yield* fold
    const known = new Set(rounds.flatMap(({ tasks }) => tasks.map(versionOf)))
    const fresh = (yield* unsettled(sql`
      ${noted("asc")} union select * from (${noted("desc")}) newest where "isReopened"`)).filter(
      (task) => !known.has(versionOf(task))
    )
    // After the tasks were read: a transaction that may have missed their facts still runs, or has ended.
    return { fresh, now: yield* running, parked: yield* prepared }
  })

  const step = Effect.gen(function* () {
    const found = yield* inTime(look)
    if (found === undefined) {
      rounds = []
      return pauses.idle
    }
    const { fresh, now, parked } = found
    const next: Array<Round> = []
    if (fresh.length > 0) {
      const left = yield* applyInTurn(fresh.filter(({ isReopened }) => isReopened))
      next.push({ tasks: fresh, awaited: now, isLast: false, left })
    }
    for (const { awaited, isLast, left: before, tasks } of rounds) {
      const current = isLast ? parked : now
      const still = new Set([...awaited].filter((each) => current.has(each)))
      const left = yield* applyInTurn(still.size === 0 || still.size < awaited.size ? tasks : before)
      if (still.size > 0) next.push({ tasks, awaited: still, isLast, left })
      // A transaction that has been prepared runs no more, and has not ended.
      else if (!isLast && parked.size > 0) next.push({ tasks, awaited: parked, isLast: true, left })
      else {
        yield* inTime(settle(tasks.filter((task) => !left.includes(task))))
        if (left.length > 0) next.push({ tasks: left, awaited: still, isLast: true, left })
      }
    }
    rounds = merged(next)
    return rounds.some(({ awaited }) => awaited.size > 0) ? pauses.awaiting : pauses.idle
  })

  /** Applies all facts again, where triggers cannot. Nothing is left to be settled. */
  const sweep = Effect.gen(function* () {
    for (const organization of yield* inTime(textsOf(sql`select distinct organization_id as text from deletions`))) {
      const end = sql`
        update deletion_tasks set unsettled_since = null
        where organization_id = ${organization} and unsettled_since is not null`
      yield* inTime(Effect.andThen(applyAll(Deletion.settleAll, [organization]), end))
    }
    return pauses.distributed
  })

  return {
    step: Effect.andThen(sql.distribution.refresh, () => (sql.distribution.isDistributed() === true ? sweep : step))
  }
})

/** Settles deletions until the scope closes. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { step } = yield* make
    // The database is down, or busy.
    const pause = Effect.orElseSucceed(step, () => pauses.idle)
    yield* Effect.forkScoped(Loop.forever("Settling deletions", Effect.flatMap(pause, Effect.sleep)))
  })
)

/** Joins rounds that wait for the same transactions. */
const merged = (rounds: ReadonlyArray<Round>): ReadonlyArray<Round> =>
  Object.values(Array.groupBy(rounds, ({ awaited, isLast }) => `${isLast} ${[...awaited].toSorted().join()}`)).map(
    (same) => ({ ...same[0], tasks: same.flatMap(({ tasks }) => tasks), left: same.flatMap(({ left }) => left) })
  )
