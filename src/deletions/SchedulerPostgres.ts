/** The scheduler over the table `deletion_tasks`. */
import { randomUUID } from "node:crypto"
import { DateTime, Duration, Effect, Ref, Schema, Struct } from "effect"
import { SqlSchema } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { Outcome } from "../api/DeletionTasks.ts"
import { nearlyAll } from "../database/Admission.ts"
import { TaskDatabase } from "../database/Database.ts"
import { codeOf, reasonOf } from "../database/SqlFailure.ts"
import type { Failure } from "../database/Store.ts"
import * as Tracing from "../observability/Tracing.ts"
import * as Deletion from "./Deletion.ts"
import type { Deletions, Delivery } from "./Delivery.ts"
import { report } from "./TaskReport.ts"
import {
  attemptsBesideOthers,
  Claim,
  type ClaimLimits,
  maximumAttempts,
  Receipt,
  RunOutcome,
  ScheduleOutcome,
  SchedulerUnavailable,
  TaskFailed
} from "./Task.ts"

const Identity = Schema.Struct({ organization: Schema.String, taskId: Schema.String })

const Timestamp = Schema.DateTimeUtcFromString

/** The last error of a task whose workers never reported one. */
const stopped = "The worker stopped during the attempt"

const unavailable = ({ reason }: Failure) => new SchedulerUnavailable({ message: reason })

/** Senders get a response within two seconds, so the store has less. */
const deliveryTimeout = Duration.millis(1300)

/** The worker has time, but must not wait until the system gives up a silent connection. */
const worker = { key: "the worker", within: Duration.seconds(5), unavailable } as const

/** Tasks run beside the worker's other statements, and leave some connections to those and to the intake. */
const tasks = { key: "the tasks", share: nearlyAll, within: Duration.seconds(65), unavailable } as const

/**
 * How long several tasks may take in one transaction. A heartbeat skips the tasks of an open transaction, so it has to
 * end while their leases last, and soon enough for tasks of a worker that died to start in its place.
 */
const transactionTimeout = Duration.millis(300)

/** Whether the statement, or the data it met, is at fault, and not the database around it. */
const isOwnFault = (error: SqlError) => /^(22|23|44|54|57014|P0)/.test(codeOf(error))

const textOf = (deletions: Deletions) => JSON.stringify(deletions)

/** What tells a claim from others. */
const Held = Schema.Struct({ ...Identity.fields, token: Schema.String })

/** Claims as parallel arrays. */
const columnsOf = (claims: ReadonlyArray<typeof Held.Type>) =>
  [
    claims.map((claim) => claim.organization),
    claims.map((claim) => claim.taskId),
    claims.map((claim) => claim.token)
  ] as const

/** A scheduler over the task database. */
export const make = Effect.fnUntraced(function* (delay: Duration.Duration) {
  const sql = yield* TaskDatabase
  const traceParent = (yield* Tracing.Traces) === undefined ? "" : ', t.trace_parent as "traceParent"'

  /** Runs statements of the worker. A row that does not decode is a bug. */
  const asWorker = <A>(statements: Effect.Effect<A, SqlError | Schema.SchemaError>) =>
    sql.run(worker, Effect.catchTag(statements, "SchemaError", Effect.die))

  const at = (time: DateTime.Utc) => sql`${DateTime.formatIso(time)}::timestamptz`

  const findTask = SqlSchema.findAll({
    Request: Schema.Struct({ ...Identity.fields, fingerprint: Schema.Uint8Array }),
    Result: Schema.Struct({ ...Receipt.fields, isSame: Schema.Boolean }),
    execute: ({ fingerprint, organization, taskId }) => sql`
      select id as "taskId", received_at as "receivedAt", scheduled_for as "scheduledFor",
        invoices_count as "invoicesCount", invoice_lines_count as "invoiceLinesCount",
        fingerprint = ${fingerprint} as "isSame"
      from deletion_tasks where organization_id = ${organization} and id = ${taskId}`
  })

  const claimTasks = SqlSchema.findAll({
    Request: Schema.Struct({
      due: Schema.Int,
      expired: Schema.Int,
      alone: Schema.Int,
      token: Schema.String,
      now: Timestamp,
      leaseEnd: Timestamp
    }),
    // The token of a task that is dead by now is nobody's.
    Result: Schema.Struct({ ...Claim.fields, isDead: Schema.Boolean, reason: Schema.NullOr(Schema.String) }),
    execute: ({ alone, due, expired, leaseEnd, now, token }) => {
      // The limit is in the text: a plan for any limit reads the whole table.
      const oldest = (condition: Fragment, limit: number) => sql`
        select organization_id, id, due_at, state = 'running' as is_takeover from deletion_tasks where due_at <= ${now}::timestamptz and ${condition}
        order by due_at ${sql.literal(`limit ${limit}`)} for update skip locked`
      const taken = sql.literal(`
        t.organization_id as organization, t.id as "taskId", t.idempotency_key as "idempotencyKey",
        t.scheduled_for as "scheduledFor", coalesce(t.claim_token::text, '') as token, t.attempts as attempt,
        t.state = 'dead' as "isDead", t.last_error as reason, open.is_takeover as "isTakeover", open.due_at
        ${traceParent}`)
      return sql`
        with due as (${oldest(sql`state = 'scheduled'`, due)}),
        expired as (${oldest(sql`state = 'running' and attempts < ${attemptsBesideOthers}`, expired)}),
        alone as (${oldest(sql`state = 'running' and attempts >= ${attemptsBesideOthers}`, alone)}),
        open as materialized (select * from due union all select * from expired union all select * from alone),
        dead as (
          update deletion_tasks t set
            state = 'dead', due_at = null, finished_at = ${now}::timestamptz,
            last_error = coalesce(t.last_error, ${stopped})
          from open
          where t.organization_id = open.organization_id and t.id = open.id and t.attempts >= ${maximumAttempts}
          returning ${taken}
        ),
        claimed as (
          update deletion_tasks t set
            state = 'running', attempts = t.attempts + 1, due_at = ${leaseEnd}::timestamptz,
            claim_token = ${token}::uuid, started_at = coalesce(t.started_at, ${now}::timestamptz)
          from open
          where t.organization_id = open.organization_id and t.id = open.id and t.attempts < ${maximumAttempts}
          returning ${taken}
        )
        select * from (select * from claimed union all select * from dead) t order by due_at`
    }
  })

  const runTasks = SqlSchema.findAll({
    Request: Schema.Array(Held),
    Result: Schema.Struct({ ...Identity.fields, outcome: Outcome }),
    execute: (claims) => {
      const running = Effect.flatMap(DateTime.now, (now) =>
        sql.unsafe(Deletion.statement, [...columnsOf(claims), DateTime.formatIso(now)])
      )
      const timeout = sql.unsafe(`set local statement_timeout = ${Duration.toMillis(transactionTimeout)}`)
      return claims.length === 1 ? running : sql.withTransaction(Effect.andThen(timeout, running))
    }
  })

  const findUntilDue = SqlSchema.findAll({
    Request: Schema.Void,
    Result: Schema.Struct({ due_at: Schema.NullOr(Schema.DateTimeUtcFromDate) }),
    execute: () => sql`
      select least(
        (select min(due_at) from deletion_tasks where state = 'scheduled'),
        (select min(due_at) from deletion_tasks where state = 'running')
      ) as due_at`
  })

  const released = (now: DateTime.Utc) => sql`
    update deletion_tasks set
      attempts = attempts - 1, state = 'scheduled', due_at = ${at(now)}, claim_token = null, finished_at = null`

  // Claims whose response was lost. They may have been made, and then nobody knows of them.
  const lostTokens = yield* Ref.make<ReadonlyArray<string>>([])
  const releaseLost = Effect.gen(function* () {
    const lost = yield* Ref.get(lostTokens)
    if (lost.length === 0) return
    yield* asWorker(
      sql`${released(yield* DateTime.now)} where state = 'running' and claim_token = any (${lost}::uuid[])`
    )
    yield* Ref.update(lostTokens, (tokens) => tokens.filter((token) => !lost.includes(token)))
  })

  return {
    schedule: Effect.fn("Scheduler.schedule")(
      function* (delivery: Delivery) {
        const { invoiceLinesCount, invoicesCount, organization, taskId } = delivery
        const receivedAt = yield* DateTime.now
        const scheduledFor = DateTime.addDuration(receivedAt, delay)
        const ownTrace = (yield* Tracing.currentTraceParent) ?? null
        // Waits for a delivery of the same key that is being stored. The winner is read in a statement of its own,
        // since this one does not see what was committed after it began.
        const inserted = yield* sql`
          insert into deletion_tasks (
            organization_id, id, idempotency_key, fingerprint, payload,
            invoices_count, invoice_lines_count, received_at, scheduled_for, due_at, trace_parent
          ) values (
            ${organization}, ${taskId}, ${delivery.idempotencyKey}, ${delivery.fingerprint},
            ${textOf(delivery.deletions)}::jsonb, ${invoicesCount}, ${invoiceLinesCount},
            ${at(receivedAt)}, ${at(scheduledFor)}, ${at(scheduledFor)}, ${ownTrace}
          ) on conflict (organization_id, id) do nothing returning 1`
        if (inserted.length > 0) {
          return ScheduleOutcome.Scheduled({
            receipt: { taskId, receivedAt, scheduledFor, invoicesCount, invoiceLinesCount }
          })
        }
        const [first] = yield* Effect.catchTag(findTask(delivery), "SchemaError", Effect.die)
        if (first?.isSame !== true) return ScheduleOutcome.KeyReused()
        return ScheduleOutcome.Duplicate({ receipt: Struct.omit(first, ["isSame"]) })
      },
      (statements, { organization }) =>
        sql.run({ key: `organization ${organization}`, within: deliveryTimeout, unavailable }, statements)
    ),

    claim: Effect.fn("Scheduler.claim")(function* (
      { alone = 0, due = 0, expired = 0 }: ClaimLimits,
      lease: Duration.Duration
    ) {
      yield* releaseLost
      const now = yield* DateTime.now
      const token = randomUUID()
      const rows = yield* asWorker(
        claimTasks({ due, expired, alone, token, now, leaseEnd: DateTime.addDuration(now, lease) })
      ).pipe(Effect.tapError(() => Ref.update(lostTokens, (tokens) => [...tokens, token])))
      for (const row of rows) if (row.isDead) yield* report(row, { result: "dead", reason: row.reason ?? stopped })
      return rows.flatMap((row) => (row.isDead ? [] : [Struct.omit(row, ["isDead", "reason"])]))
    }),

    renew: Effect.fn("Scheduler.renew")(function* (claims: ReadonlyArray<Claim>, lease: Duration.Duration) {
      if (claims.length === 0) return
      const [organizations, taskIds, tokens] = columnsOf(claims)
      // A task that is running is locked: its lock keeps others off, and must not keep the other leases waiting.
      yield* sql`
        update deletion_tasks t set due_at = ${at(DateTime.addDuration(yield* DateTime.now, lease))}
        from (
          select held.organization_id, held.id from deletion_tasks held
          join unnest(${organizations}::text[], ${taskIds}::uuid[], ${tokens}::uuid[])
            as claimed (organization_id, id, token)
            on held.organization_id = claimed.organization_id and held.id = claimed.id
              and held.claim_token = claimed.token
          where held.state = 'running'
          for update of held skip locked
        ) held
        where t.organization_id = held.organization_id and t.id = held.id`
    }, asWorker),

    run: Effect.fn("Scheduler.run")(function* (claims: ReadonlyArray<Claim>) {
      const completed = yield* sql.run(
        tasks,
        Effect.catchTags(runTasks(claims), {
          SchemaError: Effect.die,
          SqlError: (error) => Effect.fail(isOwnFault(error) ? new TaskFailed({ message: reasonOf(error) }) : error)
        })
      )
      return claims.map(({ organization, taskId }) => {
        const row = completed.find((each) => each.organization === organization && each.taskId === taskId)
        return row === undefined ? RunOutcome.Superseded() : RunOutcome.Completed({ outcome: row.outcome })
      })
    }),

    fail: Effect.fn("Scheduler.fail")(function* (
      { organization, taskId, token }: Claim,
      reason: string,
      retryAfter: Duration.Duration
    ) {
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

    release: Effect.fn("Scheduler.release")(function* ({ attempt, organization, taskId, token }: Claim) {
      const isTask = sql`organization_id = ${organization} and id = ${taskId}`
      // A task that is dead because this claim expired is still held by it. If another worker has claimed the task
      // since, it has counted an attempt on top of this one.
      yield* sql`
        with held as (${released(yield* DateTime.now)} where ${isTask} and claim_token = ${token})
        update deletion_tasks set attempts = attempts - 1
        where ${isTask} and claim_token is distinct from ${token} and due_at is not null and attempts > ${attempt}`
    }, asWorker),

    untilDue: Effect.gen(function* () {
      const [first] = yield* findUntilDue()
      if (first?.due_at == null) return undefined
      return Duration.max(Duration.zero, DateTime.distance(yield* DateTime.now, first.due_at))
    }).pipe(Effect.withSpan("Scheduler.untilDue"), asWorker)
  }
})
