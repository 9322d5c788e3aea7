/** The scheduler over the table `deletion_tasks`. */
import { DateTime, Duration, Effect, Schema, Struct } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { Outcome } from "../api/DeletionTasks.ts"
import { nearlyAll } from "../database/Admission.ts"
import { rowsOf } from "../database/Columns.ts"
import { TaskDatabase } from "../database/Database.ts"
import type { Distribution } from "../database/Distribution.ts"
import { codeOf, reasonOf } from "../database/SqlFailure.ts"
import type { Failure } from "../database/Store.ts"
import * as Tracing from "../observability/Tracing.ts"
import * as Claims from "./Claims.ts"
import * as Deletion from "./Deletion.ts"
import type { Deletions } from "./Delivery.ts"
import * as Fairness from "./Fairness.ts"
import type { Scheduler } from "./Scheduler.ts"
import {
  byOrganization,
  type Claim,
  maximumAttempts,
  Receipt,
  RunOutcome,
  ScheduleOutcome,
  SchedulerUnavailable,
  TaskFailed
} from "./Task.ts"
import { claimsOf } from "./TaskRuns.ts"
import { earliestDue } from "./Tasks.ts"

const Identity = Schema.Struct({ organization: Schema.String, taskId: Schema.String })
const identities = rowsOf(Identity)
const completions = rowsOf(Schema.Struct({ ...Identity.fields, outcome: Outcome }))
const dueTimes = rowsOf(Schema.Struct({ due_at: Schema.NullOr(Schema.DateTimeUtcFromDate) }))
const stored = rowsOf(Schema.Struct({ ...Receipt.fields, isSame: Schema.Boolean }))
const pending = rowsOf(Schema.Struct({ tasks: Schema.Int, bytes: Schema.Finite, isKnown: Schema.Boolean }))

const unavailable = ({ reason }: Failure) => new SchedulerUnavailable({ message: reason })

/** Senders get a response within two seconds, so the store has less. */
const deliveryTimeout = Duration.millis(1300)

/** The worker has time, but must not wait until the system gives up a silent connection. */
const worker = { key: "the worker", within: Duration.seconds(5), unavailable } as const

/** Tasks run beside the worker's other statements, and leave some connections to those and to the intake. */
const tasks = { key: "the tasks", share: nearlyAll, within: Duration.seconds(65), unavailable } as const

/**
 * The longest transaction of several tasks. A heartbeat skips the tasks of an open transaction, so it has to end while
 * their leases last, and soon enough for tasks of a worker that died to start in its place.
 */
const transactionTimeout = Duration.millis(300)

/** True if the statement or its data is at fault, and not the database around it. */
const isOwnFault = (error: SqlError) => /^(22|23|44|54|57014|P0)/.test(codeOf(error))

const textOf = (deletions: Deletions) => JSON.stringify(deletions)

export interface Options {
  /** From receiving a delivery to running it. */
  readonly delay: Duration.Duration
  /** By default that of the task database. */
  readonly distribution?: Distribution | undefined
  readonly bounds?: Fairness.Bounds | undefined
}

/** A scheduler over the task database. */
export const make = Effect.fnUntraced(function* ({
  bounds = Fairness.bounds,
  delay,
  distribution: given
}: Options): Effect.fn.Return<Scheduler["Service"], never, TaskDatabase> {
  const sql = yield* TaskDatabase
  const distribution = given ?? sql.distribution
  const isDistributed = () => distribution.isDistributed() !== false

  const asWorker = <A>(statements: Effect.Effect<A, SqlError>) => sql.run(worker, statements)

  const at = (time: DateTime.Utc) => Claims.at(sql, time)

  const mostTasks = sql.literal(`limit ${Math.max(bounds.known.tasks, bounds.unknown.tasks)}`)

  /** Counts the backlog of an organization. Only the index for turns has this order. */
  const countPending = (organization: string) =>
    Effect.map(
      pending(sql`
        select count(*)::integer as tasks, coalesce(sum(pg_column_size(payload)), 0)::float8 as bytes,
          exists (select from organizations where organization_id = ${organization}) as "isKnown"
        from (
          select payload from deletion_tasks
          where ${isDistributed() ? sql`organization_id = ${organization}` : sql`true`}
            and (organization_id, due_at) > (${organization}, '-infinity')
            and (organization_id, due_at) <= (${organization}, 'infinity') and state = 'scheduled'
          order by organization_id nulls first, due_at ${mostTasks}
        ) pending`),
      ([counted = { tasks: 0, bytes: 0, isKnown: false }]) => counted
    )

  const hasRoom = Fairness.makeRoom(bounds)

  /** Runs a statement for all claims or, where tables are distributed, for those of each organization. */
  const forOwners = <E>(
    claims: ReadonlyArray<Claim>,
    concurrency: number,
    run: (
      statements: typeof Deletion.one,
      parameters: ReadonlyArray<unknown>
    ) => Effect.Effect<ReadonlyArray<unknown>, E>
  ) => {
    const runSome = (some: ReadonlyArray<Claim>) => {
      const owners = some.map(({ organization }) => organization)
      const rest = [some.map(({ taskId }) => taskId), some.map(({ token }) => token)]
      return isDistributed() ? run(Deletion.one, [owners[0], ...rest]) : run(Deletion.several, [owners, ...rest])
    }
    const groups = isDistributed() ? byOrganization(claims) : [claims]
    return Effect.map(Effect.forEach(groups, runSome, { concurrency }), (rows) => rows.flat())
  }

  const timeout = sql.unsafe(`set local statement_timeout = ${Duration.toMillis(transactionTimeout)}`)

  const claim = Claims.make({ sql, distribution, run: asWorker })

  return {
    schedule: Effect.fn("Scheduler.schedule")(
      function* (delivery) {
        const { fingerprint, invoiceLinesCount, invoicesCount, organization, taskId } = delivery
        const receivedAt = yield* DateTime.now
        const scheduledFor = DateTime.addDuration(receivedAt, delay)
        const ownTrace = (yield* Tracing.currentTraceParent) ?? null
        const payload = textOf(delivery.deletions)
        const isFull = !(yield* hasRoom(organization, payload.length, countPending(organization)))
        // Waits for a delivery of the same key that is being stored. The winner is read in a statement of its own,
        // since this one does not see what was committed after it began.
        const inserted = isFull
          ? []
          : yield* sql`
          insert into deletion_tasks (
            organization_id, id, idempotency_key, fingerprint, payload,
            invoices_count, invoice_lines_count, received_at, scheduled_for, due_at, trace_parent
          ) values (
            ${organization}, ${taskId}, ${delivery.idempotencyKey}, ${fingerprint},
            ${payload}::jsonb, ${invoicesCount}, ${invoiceLinesCount},
            ${at(receivedAt)}, ${at(scheduledFor)}, ${at(scheduledFor)}, ${ownTrace}
          ) on conflict (organization_id, id) do nothing returning 1`
        if (inserted.length > 0) {
          return ScheduleOutcome.Scheduled({
            receipt: { taskId, receivedAt, scheduledFor, invoicesCount, invoiceLinesCount }
          })
        }
        const [first] = yield* stored(sql`
          select id as "taskId", received_at as "receivedAt", scheduled_for as "scheduledFor",
            invoices_count as "invoicesCount", invoice_lines_count as "invoiceLinesCount",
            fingerprint = ${fingerprint} as "isSame"
          from deletion_tasks where organization_id = ${organization} and id = ${taskId}`)
        if (first === undefined && isFull) return ScheduleOutcome.Full()
        if (first?.isSame !== true) return ScheduleOutcome.KeyReused()
        return ScheduleOutcome.Duplicate({ receipt: Struct.omit(first, ["isSame"]) })
      },
      (statements, { organization }) =>
        sql.run({ key: `organization ${organization}`, within: deliveryTimeout, unavailable }, statements)
    ),

    claim: Effect.fn("Scheduler.claim")(function* (limits, lease) {
      return yield* claimsOf(yield* claim(limits, lease))
    }),

    runsApart: isDistributed,

    renew: Effect.fn("Scheduler.renew")(function* (claims, lease) {
      if (claims.length === 0) return
      const leaseEnd = DateTime.formatIso(DateTime.addDuration(yield* DateTime.now, lease))
      yield* forOwners(claims, Claims.concurrency, ({ renewal }, parameters) =>
        asWorker(sql.unsafe(renewal, [...parameters, leaseEnd]))
      )
    }),

    run: Effect.fn("Scheduler.run")(function* (claims) {
      const running = forOwners(claims, 1, ({ deletion }, parameters) =>
        Effect.flatMap(DateTime.now, (now) => sql.unsafe(deletion, [...parameters, DateTime.formatIso(now)]))
      )
      const inTime = claims.length === 1 ? running : sql.withTransaction(Effect.andThen(timeout, running))
      const completed = yield* sql.run(
        tasks,
        Effect.mapError(completions(inTime), (error) =>
          isOwnFault(error) ? new TaskFailed({ message: reasonOf(error) }) : error
        )
      )
      return claims.map(({ organization, taskId }) => {
        const row = completed.find((each) => each.organization === organization && each.taskId === taskId)
        return row === undefined ? RunOutcome.Superseded() : RunOutcome.Completed({ outcome: row.outcome })
      })
    }),

    fail: Effect.fn("Scheduler.fail")(function* ({ organization, taskId, token }, reason, retryAfter) {
      const now = yield* DateTime.now
      const isLast = sql`attempts >= ${maximumAttempts}`
      yield* sql`
        update deletion_tasks set
          state = case when ${isLast} then 'dead' else 'scheduled' end,
          due_at = case when ${isLast} then null else ${at(DateTime.addDuration(now, retryAfter))} end,
          finished_at = case when ${isLast} then ${at(now)} end,
          claim_token = null, last_error = ${reason}
        where organization_id = ${organization} and id = ${taskId} and claim_token = ${token} and state = 'running'`
    }, asWorker),

    release: Effect.fn("Scheduler.release")(function* ({ attempt, organization, taskId, token }) {
      const isTask = sql`organization_id = ${organization} and id = ${taskId}`
      // A task that is dead because this claim expired is still held by it.
      const held = yield* sql`
        ${Claims.released(sql, yield* DateTime.now)} where ${isTask} and claim_token = ${token} returning 1`
      if (held.length > 0) return
      // If another worker has claimed the task since, it has counted an attempt on top of this one.
      yield* sql`
        update deletion_tasks set attempts = attempts - 1
        where ${isTask} and claim_token is distinct from ${token} and due_at is not null and attempts > ${attempt}`
    }, asWorker),

    empty: Effect.fn("Scheduler.empty")(function* (until, limit) {
      const old = yield* identities(sql`
        select organization_id as organization, id as "taskId" from deletion_tasks
        where state = 'completed' and payload is not null and finished_at <= ${at(until)}
        order by finished_at ${sql.literal(`limit ${limit}`)}`)
      for (const some of byOrganization(old)) {
        yield* sql`
          update deletion_tasks set payload = null
          where organization_id = ${some[0].organization} and id = any (${some.map(({ taskId }) => taskId)}::uuid[])`
      }
      return old.length
    }, asWorker),

    untilDue: Effect.gen(function* () {
      const [first] = yield* dueTimes(sql.unsafe(earliestDue))
      if (first?.due_at == null) return undefined
      return Duration.max(Duration.zero, DateTime.distance(yield* DateTime.now, first.due_at))
    }).pipe(Effect.withSpan("Scheduler.untilDue"), asWorker)
  }
})
