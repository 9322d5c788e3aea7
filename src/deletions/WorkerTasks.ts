/**
 * Tasks as a worker finds, starts and ends them. A worker starts a task in a commit of its own, which counts the attempt, and
 * then runs it (Run.ts) in transactions that lock its row. The lock is the lease, which goes with the worker: another one
 * starts a task again that was started `grace` ago, and whose row nobody has locked.
 */
import { randomUUID } from "node:crypto"
import { Clock, DateTime, Duration, Effect, Schema } from "effect"
import { rowsOf } from "../database/Columns.ts"
import type { Database } from "../database/Database.ts"
import * as Marks from "./Marks.ts"
import { TaskId } from "./Marks.ts"
import { maximumAttempts } from "./Retries.ts"

/** An attempt at a task. */
export const Claim = Schema.Struct({
  ...TaskId.fields,
  idempotencyKey: Schema.String,
  scheduledFor: Schema.DateTimeUtcFromDate,
  token: Schema.String,
  /** The number of the attempt, from 1. */
  attempt: Schema.Int,
  /** True if the worker of the attempt before has stopped. */
  isTakeover: Schema.Boolean,
  /** The `traceparent` of the delivery, where it was sampled. */
  traceParent: Schema.optionalKey(Schema.NullOr(Schema.String))
})
export type Claim = typeof Claim.Type

/** A task that was started, or that is dead because its workers stopped during its last attempts. */
const Started = Schema.Struct({ ...Claim.fields, isDead: Schema.Boolean, reason: Schema.NullOr(Schema.String) })
export type Started = typeof Started.Type

const Due = Schema.Struct({ ...TaskId.fields, attempts: Schema.Int, earliest: Schema.DateTimeUtcFromDate })
/** A task that is due, with the number of its attempts. */
export type Due = Pick<typeof Due.Type, "organization" | "taskId" | "attempts">

/** The last error of a task whose workers never reported one. */
export const stopped = "The worker stopped during the attempt"

/** From the start of an attempt, or of one of its transactions, to the lock of the row. */
const grace = Duration.seconds(1)

const ids = rowsOf(TaskId)
const starts = rowsOf(Started)
const dues = rowsOf(Due)

/**
 * The time before which no task was due a moment ago. While a dump is open, Postgres keeps what finished tasks left in the
 * index, and each look from the beginning reads all of it: there is one a minute.
 */
const makeFloor = () => {
  const beginning = DateTime.makeUnsafe(0)
  let [since, fullAt] = [beginning, 0n]
  return {
    since: Effect.map(Clock.monotonicTimeNanos, (now) => {
      if (now < fullAt) return since
      fullAt = now + 60_000_000_000n
      return beginning
    }),
    found: (now: DateTime.Utc, earliest = now) => {
      since = DateTime.min(DateTime.subtract(now, { minutes: 1 }), earliest)
    }
  }
}

/** The conditions of statements about a task. */
export const conditions = (sql: Database) => {
  const isTask = ({ organization, taskId }: TaskId) => sql`organization_id = ${organization} and id = ${taskId}::uuid`
  return {
    at: (time: DateTime.Utc) => sql`${DateTime.formatIso(time)}::timestamptz`,
    isTask,
    /** The attempt still has the task. */
    isHeld: (claim: Claim) => sql`${isTask(claim)} and claim_token = ${claim.token}::uuid and state = 'running'`,
    /** A fact of the task. */
    isFact: ({ organization, taskId }: TaskId) => sql`organization_id = ${organization} and task_id = ${taskId}::uuid`
  }
}

/** The statements of a worker, but for those of a run. */
export const make = (sql: Database) => {
  const floor = makeFloor()
  const { at, isFact, isHeld, isTask } = conditions(sql)

  return {
    /** Due tasks in turns of their organizations: the oldest of each, then the second, and so on; first those that were started. */
    due: Effect.fnUntraced(function* (limit: number) {
      const now = yield* DateTime.now
      const found = yield* dues(sql`
        select organization_id as organization, id as "taskId", attempts, earliest from (
          select organization_id, id, attempts, due_at, state, min(due_at) over () as earliest,
            row_number() over (partition by organization_id order by state = 'running' desc, due_at) as turn
          from deletion_tasks
          where state in ('scheduled', 'running') and due_at between ${at(yield* floor.since)} and ${at(now)}
        ) due order by turn, state = 'running' desc, due_at limit ${sql.literal(`${limit}`)}`)
      floor.found(now, found[0]?.earliest)
      return found
    }),

    /** Starts an attempt, and counts it; none if another worker has the task. After its last attempt it is dead. */
    start: (task: TaskId) =>
      Effect.flatMap(DateTime.now, (now) =>
        starts(sql`
          with task as materialized (
            select id, state = 'running' as is_takeover, attempts >= ${maximumAttempts}::integer as is_dead from deletion_tasks
            where ${isTask(task)} and state in ('scheduled', 'running') and due_at <= ${at(now)}
            for update skip locked
          )
          update deletion_tasks t set
            state = case when is_dead then 'dead' else 'running' end,
            attempts = case when is_dead then attempts else attempts + 1 end,
            due_at = case when is_dead then null else ${at(DateTime.addDuration(now, grace))} end,
            claim_token = ${randomUUID()}::uuid, started_at = coalesce(started_at, ${at(now)}),
            finished_at = case when is_dead then ${at(now)} end,
            last_error = case when is_dead then coalesce(last_error, ${stopped}) else last_error end
          from task where t.organization_id = ${task.organization} and t.id = task.id
          returning t.organization_id as organization, t.id as "taskId", t.idempotency_key as "idempotencyKey",
            t.scheduled_for as "scheduledFor", t.claim_token as token, t.attempts as attempt, task.is_takeover as "isTakeover",
            t.trace_parent as "traceParent", task.is_dead as "isDead", t.last_error as reason`)
      ),

    /** Ends an attempt that counts: schedules another one, or marks the task dead. */
    fail: (claim: Claim, reason: string, after: Duration.Duration) =>
      Effect.flatMap(DateTime.now, (now) => {
        const isLast = sql`attempts >= ${maximumAttempts}::integer`
        return sql`
          update deletion_tasks set
            state = case when ${isLast} then 'dead' else 'scheduled' end,
            due_at = case when ${isLast} then null else ${at(DateTime.addDuration(now, after))} end,
            finished_at = case when ${isLast} then ${at(now)} end,
            claim_token = null, last_error = ${reason}
          where ${isHeld(claim)}`
      }),

    /** Takes an attempt back that an outage or others have ended. Another worker may have started the task since. */
    postpone: (claim: Claim, after: Duration.Duration) =>
      Effect.flatMap(DateTime.now, (now) => {
        const isHolder = sql`claim_token = ${claim.token}::uuid`
        return sql`
          update deletion_tasks set
            attempts = attempts - 1,
            state = case when ${isHolder} then 'scheduled' else state end,
            due_at = case when ${isHolder} then ${at(DateTime.addDuration(now, after))} else due_at end,
            claim_token = case when ${isHolder} then null else claim_token end
          where ${isTask(claim)} and state in ('scheduled', 'running')
            and (${isHolder} or attempts > ${claim.attempt}::integer)`
      }),

    /** The tasks that have ended until a time, and have their payload. */
    ended: Effect.fnUntraced(function* (until: DateTime.Utc, limit: number) {
      // A clock that is ahead of the database's does not end the retention early: nothing brings back what is forgotten.
      const ahead = sql`greatest(${at(yield* DateTime.now)} - now(), interval '0')`
      const old = yield* Effect.forEach(["completed", "cancelled"] as const, (state) =>
        ids(sql`
          select organization_id as organization, id as "taskId" from deletion_tasks
          where state = ${sql.literal(`'${state}'`)} and payload is not null and finished_at <= ${at(until)} - ${ahead}
          order by finished_at limit ${sql.literal(`${limit}`)}`)
      )
      return old.flat()
    }),

    /** Empties the payload of a task. Its items that were not found are forgotten once open transactions have ended. */
    empty: (task: TaskId) =>
      Marks.inMarking(
        sql,
        Effect.all([
          Marks.judge(sql, { organization: task.organization, ids: [task.taskId] }),
          sql`delete from deletions where ${isFact(task)} and (verdict like '%mismatch' or undone_at is not null and not holds)`,
          sql`update deletions set verdict = 'forgotten' where ${isFact(task)} and verdict = 'not_found'`,
          Marks.unsettle(sql, task),
          sql`update deletion_tasks set payload = null where ${isTask(task)}`
        ])
      )
  }
}
