/**
 * The scheduler of deletion tasks: each delivery is scheduled once, and each task runs once in effect.
 *
 * A worker claims a task for a lease. The claim counts an attempt, in a commit of its own, and carries a token. A
 * worker runs a task in two transactions, which check the token first: if another worker has claimed the task since, they
 * change nothing. The first stores what is deleted as facts, the second applies these to the rows and ends the task. Both
 * may be repeated.
 *
 * Only its worker knows that an outage ended an attempt, and another worker may have taken the task over meanwhile:
 * `release` takes the attempt back in either case. Retries.ts has the policy.
 */
import { Context, DateTime, Duration, Effect, Layer, Schema, Struct } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { Outcome } from "../api/DeletionTasks.ts"
import { nearlyAll } from "../database/Admission.ts"
import { rowsOf } from "../database/Columns.ts"
import { TaskDatabase } from "../database/Database.ts"
import type { Failure } from "../database/Store.ts"
import { inTransaction, reasonOf } from "../database/SqlFailure.ts"
import { note } from "../observability/RequestFacts.ts"
import * as Tracing from "../observability/Tracing.ts"
import * as Backlog from "./Backlog.ts"
import * as Claims from "./Claims.ts"
import * as Deletion from "./Deletion.ts"
import { type Deletions, type Delivery, Receipt, receiptOf } from "./Delivery.ts"
import * as Retries from "./Retries.ts"
import * as Task from "./WorkerTasks.ts"

/** The task store does not answer. The call may have had its effect; every call may be repeated. */
export class SchedulerUnavailable extends Schema.TaggedError<SchedulerUnavailable>()("SchedulerUnavailable", {
  message: Schema.String
}) {
  static readonly from = ({ reason }: Failure) => new SchedulerUnavailable({ message: reason })
}

/** A task failed for a reason of its own, which another attempt may meet again. */
export class TaskFailed extends Schema.TaggedError<TaskFailed>()("TaskFailed", { message: Schema.String }) {}

/**
 * The result of scheduling a delivery. `duplicate`: it was stored before, with this receipt. `key_reused`: its key was
 * used with another payload. `full`: the backlog of its organization, or of all unknown ones, is
 * at its bound. `unavailable`: its organization was closed after the delivery was verified. These three store nothing.
 */
export type ScheduleOutcome =
  | { readonly status: "scheduled" | "duplicate"; readonly receipt: Receipt }
  | { readonly status: "key_reused" }
  | { readonly status: "full" | "unavailable" }

type Answer<A, E = never> = Effect.Effect<A, SchedulerUnavailable | E>

export class Scheduler extends Context.Service<
  Scheduler,
  {
    /** Stores a task for a delivery. Waits for a delivery of the same key that is being stored. */
    readonly schedule: (delivery: Delivery) => Answer<ScheduleOutcome>
    /** Claims tasks for a lease, oldest first. A task whose attempts are used up becomes `dead` instead. */
    readonly claim: (limits: Task.ClaimLimits, lease: Duration.Duration) => Answer<ReadonlyArray<Task.Claim>>
    /** The heartbeat: leases begin again now. */
    readonly renew: (claims: ReadonlyArray<Task.Claim>, lease: Duration.Duration) => Answer<void>
    /** True if organizations are on different servers, so that tasks of several better share no transaction. */
    readonly isPerOrganization: () => boolean
    /**
     * Runs tasks and marks them completed: all or, when one fails, none. One whose rows others hold is postponed: what it
     * deletes is known to writers from here on. A task that another worker has by now is not changed, and has no outcome.
     * Fails with `TaskFailed` if several tasks are to be run one by one, or the attempt of one counts.
     */
    readonly run: (claims: ReadonlyArray<Task.Claim>) => Answer<ReadonlyArray<Task.RunOutcome>, TaskFailed>
    /** Schedules a failed task for another attempt after a while. After its last attempt, marks it `dead`. */
    readonly fail: (claim: Task.Claim, reason: string, retryAfter: Duration.Duration) => Answer<void>
    /**
     * Takes the attempt back. If the worker still holds the task, it is due after a while, or at once. May be repeated, and
     * is to be when it returns false: another session holds the row.
     */
    readonly release: (claim: Task.Claim, after?: Duration.Duration) => Answer<boolean>
    /**
     * Empties payloads of tasks that were completed or cancelled until a time, oldest first, and forgets their items that
     * were not deleted. Returns the number of tasks.
     */
    readonly empty: (until: DateTime.Utc, limit: number) => Answer<number>
    /** The time until a task is due or a lease expires; undefined if no task is open. */
    readonly untilDue: Answer<Duration.Duration | undefined>
    /** True if a task waits to be claimed isolated. */
    readonly hasIsolated: Answer<boolean>
  }
>()("practice-data/deletions/Scheduler") {
  /** Tasks in the table `deletion_tasks`. `delay`: from receiving a delivery to running it. */
  static readonly layer = (delay: Duration.Duration) => Layer.effect(Scheduler, makeScheduler(delay))
}

const identities = rowsOf(Task.TaskId)
const completions = rowsOf(Schema.Struct({ ...Task.TaskId.fields, outcome: Outcome }))
const stored = rowsOf(Schema.Struct({ ...Receipt.fields, isSame: Schema.Boolean }))

const unavailable = SchedulerUnavailable.from

/** Senders get a response within two seconds, so the store has less. */
const deliveryTimeout = Duration.millis(1300)

/** The worker has time, but must not wait until the system gives up a silent connection. */
const worker = { key: "the worker", within: Duration.seconds(5), unavailable } as const

/** Tasks run beside the worker's other statements, and leave some connections to those and to the intake. */
const tasks = { key: "the tasks", share: nearlyAll, within: Duration.seconds(65), unavailable } as const

/**
 * The longest statement about several tasks. A heartbeat skips the tasks of an open transaction, so it has to end while
 * their leases last, and soon enough for tasks of a worker that died to start in its place.
 */
const statementTimeout = "300ms"

const longestRun = Duration.minutes(1)

const textOf = (deletions: Deletions) => JSON.stringify(deletions)

/** A scheduler over the task database. `delay`: from receiving a delivery to running it. */
export const makeScheduler = Effect.fnUntraced(function* (
  delay: Duration.Duration,
  bounds: Backlog.Bounds = Backlog.bounds,
  mostRemembered = Deletion.mostRemembered
): Effect.fn.Return<Scheduler["Service"], never, TaskDatabase> {
  const sql = yield* TaskDatabase
  const isDistributed = () => sql.distribution.isDistributed() !== false

  const asWorker = <A>(statements: Effect.Effect<A, SqlError>) => sql.run(worker, statements)

  const at = (time: DateTime.Utc) => Claims.at(sql, time)

  /** Claims with the statements about them or, where tables are distributed, those of each organization. */
  const groupsOf = (claims: ReadonlyArray<Task.Claim>) => {
    const isPerOrganization = isDistributed()
    const tasksOf = (some: ReadonlyArray<Task.TaskId>) => [
      isPerOrganization ? some[0]?.organization : some.map(({ organization }) => organization),
      some.map(({ taskId }) => taskId)
    ]
    return (isPerOrganization ? Task.byOrganization(claims) : [claims]).map((some) => ({
      statements: isPerOrganization ? Deletion.withinOrganization : Deletion.acrossOrganizations,
      tasksOf,
      claims: [...tasksOf(some), some.map(({ token }) => token)]
    }))
  }
  type Group = ReturnType<typeof groupsOf>[number]

  const remember = Effect.fnUntraced(function* ({ claims, statements }: Group) {
    const now = DateTime.formatIso(yield* DateTime.now)
    yield* Effect.forEach(statements.remember, (text) => sql.unsafe(text, [...claims, now]))
  })

  /** Applies the facts of claimed tasks, and ends those that have no rows left. Returns the outcomes of those that it holds. */
  const end = Effect.fnUntraced(function* ({ claims, statements, tasksOf }: Group) {
    const held = yield* identities(sql.unsafe(statements.hold, claims))
    const outcomes = new Map<string, Task.RunOutcome>(held.map((task) => [Task.keyOf(task), Task.locked]))
    if (held.length === 0) return outcomes
    yield* sql.unsafe("set local practice_data.keep_times = on")
    for (const statement of statements.run) yield* sql.unsafe(statement, tasksOf(held))
    const locked = new Set((yield* identities(sql.unsafe(statements.left, tasksOf(held)))).map(Task.keyOf))
    const free = held.filter((task) => !locked.has(Task.keyOf(task)))
    if (free.length === 0) return outcomes
    const now = DateTime.formatIso(yield* DateTime.now)
    const completed = yield* completions(sql.unsafe(statements.complete, [...tasksOf(free), now]))
    for (const task of completed) outcomes.set(Task.keyOf(task), task.outcome)
    yield* sql.unsafe(statements.forget, [...tasksOf(free), mostRemembered])
    return outcomes
  })

  const roomOf = Backlog.makeRoom(bounds, Backlog.counting(sql, bounds, isDistributed))
  const { claim, earliestDue, hasIsolated, release } = Claims.make(sql, asWorker)

  return {
    schedule: Effect.fn("Scheduler.schedule")(
      function* (delivery): Effect.fn.Return<ScheduleOutcome, SqlError> {
        const { fingerprint, organization, taskId } = delivery
        const receipt = yield* receiptOf(delivery, delay)
        const [receivedAt, scheduledFor] = [at(receipt.received_at), at(receipt.scheduled_for)]
        const ownTrace = (yield* Tracing.currentTraceParent) ?? null
        const payload = textOf(delivery.deletions)
        const { hasRoom, isKnown } = yield* roomOf(organization, payload.length)
        if (isKnown) yield* note({ isKnown })
        const row = sql`
          ${organization}, ${taskId}, ${delivery.idempotencyKey}, ${fingerprint},
          ${payload}::jsonb, ${isKnown}, ${receipt.invoices_count}, ${receipt.invoice_lines_count},
          ${receivedAt}, ${scheduledFor}, ${scheduledFor}, ${ownTrace}`
        // Waits for a delivery of the same key that is being stored. The winner is read in a statement of its own,
        // since this one does not see what was committed after it began.
        const inserted = !hasRoom
          ? []
          : yield* sql`
          insert into deletion_tasks (
            organization_id, id, idempotency_key, fingerprint, payload, is_known,
            invoices_count, invoice_lines_count, received_at, scheduled_for, due_at, trace_parent
          ) values (${row})
          on conflict (organization_id, id) do nothing returning 1`
        if (inserted.length > 0) return { status: "scheduled", receipt }
        // The commit of the first may have been given up while it waited for a synchronous standby: then only this server has
        // its task. The message makes this statement write, so that its commit waits for the standby as well.
        const [first] = yield* stored(sql`
          select received_at, scheduled_for, invoices_count, invoice_lines_count, fingerprint = ${fingerprint} as "isSame",
            pg_logical_emit_message(true, 'practice_data', '')::text
          from deletion_tasks where organization_id = ${organization} and id = ${taskId}`)
        if (first === undefined) return { status: hasRoom ? "unavailable" : "full" }
        if (!first.isSame) return { status: "key_reused" }
        return { status: "duplicate", receipt: Struct.omit(first, ["isSame"]) }
      },
      (statements, { organization }) =>
        sql.run({ key: `organization ${organization}`, within: deliveryTimeout, unavailable }, statements)
    ),

    claim: (limits, lease) => Effect.flatMap(claim(limits, lease), Task.claimsOf),

    isPerOrganization: isDistributed,

    renew: Effect.fnUntraced(function* (claims, lease) {
      if (claims.length === 0) return
      const leaseEnd = DateTime.addDuration(yield* DateTime.now, lease)
      const renewals = groupsOf(claims).map(({ claims: held, statements }) =>
        asWorker(sql.unsafe(statements.renewal, [...held, DateTime.formatIso(leaseEnd)]))
      )
      yield* Effect.all(renewals, { concurrency: Claims.concurrency, discard: true })
    }),

    run: Effect.fn("Scheduler.run")(function* (claims) {
      const groups = groupsOf(claims)
      const isSingle = claims.length === 1
      const settings = sql.unsafe(Deletion.transactionSettings(isSingle ? undefined : statementTimeout))
      const forAll = <A>(step: (group: Group) => Effect.Effect<A, SqlError>) =>
        inTransaction(sql, Effect.andThen(settings, Effect.forEach(groups, step)))
      const running = Effect.andThen(forAll(remember), forAll(end)).pipe(
        Effect.map((ended) => {
          const outcomes = new Map(ended.flatMap((group) => [...group]))
          return claims.map((each) => outcomes.get(Task.keyOf(each)))
        }),
        Effect.catch((error): Effect.Effect<ReadonlyArray<Task.RunOutcome>, SqlError | TaskFailed> => {
          const [ending, reason] = [Retries.endingOf(error, !isSingle), reasonOf(error)]
          if (ending === "postponed") return Effect.succeed([{ postponed: reason }])
          return Effect.fail(ending === "failed" ? new TaskFailed({ message: reason }) : error)
        }),
        Effect.timeoutOrElse({
          duration: longestRun,
          orElse: () => Effect.fail(new TaskFailed({ message: `It took longer than ${Duration.format(longestRun)}` }))
        })
      )
      return yield* sql.run(tasks, running)
    }),

    fail: Effect.fn("Scheduler.fail")(function* ({ organization, taskId, token }, reason, retryAfter) {
      const now = yield* DateTime.now
      const isLast = sql`attempts >= ${Retries.maximumAttempts}`
      yield* sql`
        update deletion_tasks set
          state = case when ${isLast} then 'dead' else 'scheduled' end,
          due_at = case when ${isLast} then null else ${at(DateTime.addDuration(now, retryAfter))} end,
          finished_at = case when ${isLast} then ${at(now)} end,
          claim_token = null, last_error = ${reason}
        where organization_id = ${organization} and id = ${taskId} and claim_token = ${token} and state = 'running'`
    }, asWorker),

    release,

    empty: Effect.fnUntraced(function* (until, limit) {
      // A clock that is ahead of the database's does not end the retention early: nothing brings back what is forgotten.
      const ahead = sql`greatest(${at(yield* DateTime.now)} - now(), interval '0')`
      const ended = yield* asWorker(
        Effect.forEach(["completed", "cancelled"] as const, (state) =>
          identities(sql`
            select organization_id as organization, id as "taskId" from deletion_tasks
            where state = ${sql.literal(`'${state}'`)} and payload is not null and finished_at <= ${at(until)} - ${ahead}
            order by finished_at ${sql.literal(`limit ${limit}`)}`)
        )
      )
      const old = ended.flat()
      // Each by itself: the items of many may take longer than the worker has.
      for (const { organization, taskId } of old) {
        // In the literal, the organization is the first parameter.
        const forget = sql`
          delete from deletions d where d.organization_id = ${organization} and d.task_id = ${taskId}
            and d.verdict <> 'deleted' and not ${sql.literal(Deletion.hasArrived({ idIn: () => "$1" }))}`
        const update = sql`
          update deletion_tasks set payload = null where organization_id = ${organization} and id = ${taskId}`
        yield* asWorker(Effect.andThen(forget, update))
      }
      return old.length
    }),

    untilDue: Effect.gen(function* () {
      const dueAt = yield* earliestDue
      return dueAt && Duration.max(Duration.zero, DateTime.distance(yield* DateTime.now, dueAt))
    }),

    hasIsolated
  }
})
