/** The scheduler over the table `deletion_tasks`. */
import { randomUUID } from "node:crypto"
import { Array, Clock, DateTime, Duration, Effect, Equal, Order, Ref } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { nearlyAll } from "../database/Admission.ts"
import { TaskDatabase } from "../database/Database.ts"
import { codeOf, reasonOf } from "../database/SqlFailure.ts"
import type { Failure } from "../database/Store.ts"
import * as Deletion from "./Deletion.ts"
import type { Deletions } from "./Delivery.ts"
import type { Scheduler } from "./Scheduler.ts"
import {
  attemptsBesideOthers,
  type Claim,
  maximumAttempts,
  type Outcome,
  type Receipt,
  RunOutcome,
  ScheduleOutcome,
  SchedulerUnavailable,
  TaskFailed
} from "./Task.ts"

interface TaskRow {
  readonly scheduled_for: Date
  readonly received_at: Date
  readonly invoices_count: number
  readonly invoice_lines_count: number
  readonly fingerprint: Uint8Array
}

interface ClaimRow {
  readonly organization_id: string
  readonly id: string
  readonly state: string
  readonly attempts: number
  readonly was_due: Date
}

const byDue = Order.mapInput(Order.Date, (row: ClaimRow) => row.was_due)

/** Why a task is dead whose worker never said. */
const stopped = "The worker stopped during the attempt"

interface OutcomeRow {
  readonly organization_id: string
  readonly id: string
  readonly outcome: Outcome
}

/** Claims as parallel arrays. */
const columnsOf = (claims: ReadonlyArray<Claim>) =>
  [
    claims.map((claim) => claim.organization),
    claims.map((claim) => claim.taskId),
    claims.map((claim) => claim.token)
  ] as const

const textOf = (deletions: Deletions) => JSON.stringify(deletions)

const at = (millis: number) => DateTime.formatIso(DateTime.makeUnsafe(millis))

const unavailable = ({ reason }: Failure) => new SchedulerUnavailable({ message: reason })

/** Whether the statement itself, or what it met in the data, is at fault, and not the database around it. */
const isOwnFault = (error: SqlError) => /^(22|23|44|54|57014|P0)/.test(codeOf(error))

/** Answers a sender in time: within two seconds with all around it. */
const deadline = Duration.millis(1300)

/** The worker has time, but not until a silent connection is given up by the system. */
const worker = { key: "the worker", within: Duration.seconds(5), unavailable } as const

/** Tasks are run beside the worker's other statements, and leave some connections to those and to the intake. */
const tasks = { key: "the tasks", share: nearlyAll, within: Duration.seconds(65), unavailable } as const

const receiptOf = (taskId: string, row: TaskRow): Receipt => ({
  taskId,
  scheduledFor: DateTime.makeUnsafe(row.scheduled_for),
  receivedAt: DateTime.makeUnsafe(row.received_at),
  invoicesCount: row.invoices_count,
  invoiceLinesCount: row.invoice_lines_count
})

/**
 * How long tasks may take together. Renewals pass by the tasks of an open transaction, so it ends while their leases
 * last, and soon enough for tasks of a worker that died to be begun in its place.
 */
const longestTogether = Duration.millis(300)

/** A scheduler over the task database. */
export const make = Effect.fnUntraced(function* (delay: Duration.Duration) {
  const sql = yield* TaskDatabase
  const answered = <A>(query: Effect.Effect<A, SqlError>) => sql.run(worker, query)
  // Claims whose answer did not arrive. They may have been made.
  const lost = yield* Ref.make<ReadonlyArray<string>>([])
  const settleLost = Effect.gen(function* () {
    const tokens = yield* Ref.get(lost)
    if (tokens.length === 0) return
    const now = yield* Clock.currentTimeMillis
    yield* answered(sql`
      update deletion_tasks set
        attempts = attempts - 1, state = 'scheduled', due_at = ${at(now)}::timestamptz, claim_token = null
      where state = 'running' and claim_token = any (${tokens}::uuid[])`)
    yield* Ref.update(lost, (all) => all.filter((token) => !tokens.includes(token)))
  })

  const runAll = (claims: ReadonlyArray<Claim>, now: number) =>
    sql.unsafe<OutcomeRow>(Deletion.statement, [...columnsOf(claims), at(now)])

  const runTogether = Effect.fn("Scheduler.runTogether")(function* (claims: ReadonlyArray<Claim>) {
    const now = yield* Clock.currentTimeMillis
    const bound = sql.unsafe(`set local statement_timeout = ${Duration.toMillis(longestTogether)}`)
    const running =
      claims.length === 1 ? runAll(claims, now) : sql.withTransaction(Effect.andThen(bound, runAll(claims, now)))
    const completed = yield* sql.run(
      tasks,
      Effect.catchTag(running, "SqlError", (error) =>
        Effect.fail(isOwnFault(error) ? new TaskFailed({ message: reasonOf(error) }) : error)
      )
    )
    return claims.map(({ organization, taskId }) => {
      const row = completed.find(({ organization_id, id }) => organization_id === organization && id === taskId)
      return row === undefined ? RunOutcome.Superseded() : RunOutcome.Completed({ outcome: row.outcome })
    })
  })

  const scheduler: Scheduler["Service"] = {
    schedule: Effect.fn("Scheduler.schedule")(
      function* (delivery) {
        const now = yield* Clock.currentTimeMillis
        const { organization, taskId } = delivery
        const scheduledFor = now + Duration.toMillis(delay)
        // Waits for a delivery of the same key that is being stored. The winner has to be read in a statement of its
        // own: this one does not see what was committed after it began.
        const inserted = yield* sql`
          insert into deletion_tasks (
            organization_id, id, idempotency_key, fingerprint, payload,
            invoices_count, invoice_lines_count, received_at, scheduled_for, due_at
          ) values (
            ${organization}, ${taskId}, ${delivery.idempotencyKey}, ${delivery.fingerprint},
            ${textOf(delivery.deletions)}::jsonb, ${delivery.invoicesCount}, ${delivery.invoiceLinesCount},
            ${at(now)}, ${at(scheduledFor)}, ${at(scheduledFor)}
          ) on conflict (organization_id, id) do nothing returning 1 as inserted`
        if (inserted.length > 0) {
          return ScheduleOutcome.Scheduled({
            receipt: {
              taskId,
              scheduledFor: DateTime.makeUnsafe(scheduledFor),
              receivedAt: DateTime.makeUnsafe(now),
              invoicesCount: delivery.invoicesCount,
              invoiceLinesCount: delivery.invoiceLinesCount
            }
          })
        }
        const [first] = yield* sql<TaskRow>`
          select scheduled_for, received_at, invoices_count, invoice_lines_count, fingerprint
          from deletion_tasks where organization_id = ${organization} and id = ${taskId}`
        if (first === undefined || !Equal.equals([...first.fingerprint], [...delivery.fingerprint])) {
          return ScheduleOutcome.KeyReused()
        }
        return ScheduleOutcome.Duplicate({ receipt: receiptOf(taskId, first) })
      },
      (statements, { organization }) =>
        sql.run({ key: `organization ${organization}`, within: deadline, unavailable }, statements)
    ),

    claim: Effect.fn("Scheduler.claim")(function* (limits, lease) {
      yield* settleLost
      const now = yield* Clock.currentTimeMillis
      const token = randomUUID()
      // In the text, since a plan for any limit reads the whole table.
      const most = (limit: number) => sql.literal(`limit ${Math.trunc(limit)}`)
      const usedUp = sql`t.attempts >= ${maximumAttempts}`
      const rows = yield* sql<ClaimRow>`
        with due as (
          select organization_id, id, due_at from deletion_tasks
          where due_at <= ${at(now)}::timestamptz and state = 'scheduled'
          order by due_at ${most(limits.due)} for update skip locked
        ),
        expired as (
          select organization_id, id, due_at from deletion_tasks
          where due_at <= ${at(now)}::timestamptz and state = 'running' and attempts < ${attemptsBesideOthers}
          order by due_at ${most(limits.expired)} for update skip locked
        ),
        alone as (
          select organization_id, id, due_at from deletion_tasks
          where due_at <= ${at(now)}::timestamptz and state = 'running' and attempts >= ${attemptsBesideOthers}
          order by due_at ${most(limits.alone)} for update skip locked
        ),
        claimed as (select * from due union all select * from expired union all select * from alone)
        update deletion_tasks t set
          state = case when ${usedUp} then 'dead' else 'running' end,
          attempts = least(t.attempts + 1, ${maximumAttempts}),
          due_at = case when ${usedUp} then null else ${at(now + Duration.toMillis(lease))}::timestamptz end,
          finished_at = case when ${usedUp} then ${at(now)}::timestamptz end,
          last_error = case when ${usedUp} then coalesce(t.last_error, ${stopped}) else t.last_error end,
          claim_token = case when ${usedUp} then t.claim_token else ${token}::uuid end,
          started_at = coalesce(t.started_at, ${at(now)}::timestamptz)
        from claimed
        where t.organization_id = claimed.organization_id and t.id = claimed.id
        returning t.organization_id, t.id, t.state, t.attempts, claimed.due_at as was_due`.pipe(
        answered,
        Effect.tapError(() => Ref.update(lost, (tokens) => [...tokens, token]))
      )
      return Array.sort(rows, byDue)
        .filter((row) => row.state === "running")
        .map((row) => ({ organization: row.organization_id, taskId: row.id, token, attempt: row.attempts }))
    }),

    renew: Effect.fn("Scheduler.renew")(function* (claims, lease) {
      if (claims.length === 0) return
      const now = yield* Clock.currentTimeMillis
      const [organizations, taskIds, tokens] = columnsOf(claims)
      // A task that is being run is locked: its lock keeps others off, and must not keep the other leases waiting.
      yield* sql`
          update deletion_tasks t set due_at = ${at(now + Duration.toMillis(lease))}::timestamptz
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
    }, answered),

    run: (claim) => Effect.map(runTogether([claim]), ([outcome = RunOutcome.Superseded()]) => outcome),
    runTogether,

    fail: Effect.fn("Scheduler.fail")(function* ({ organization, taskId, token }, reason, retryAfter) {
      const now = yield* Clock.currentTimeMillis
      yield* sql`
          update deletion_tasks set
            state = case when attempts >= ${maximumAttempts} then 'dead' else 'scheduled' end,
            due_at = case when attempts >= ${maximumAttempts} then null
              else ${at(now + Duration.toMillis(retryAfter))}::timestamptz end,
            finished_at = case when attempts >= ${maximumAttempts} then ${at(now)}::timestamptz end,
            claim_token = null, last_error = ${reason}
          where organization_id = ${organization} and id = ${taskId} and claim_token = ${token} and state = 'running'`
    }, answered),

    giveBack: Effect.fn("Scheduler.giveBack")(function* ({ organization, taskId, token, attempt }) {
      const now = yield* Clock.currentTimeMillis
      // The attempt did not count, even if another worker has claimed the task since, or has given it up because the
      // attempts were used up: then it still has this token. Saying so twice is as once.
      const isOver = sql`(claim_token = ${token})`
      yield* answered(sql`
        update deletion_tasks set
          attempts = attempts - 1,
          due_at = case when ${isOver} then ${at(now)}::timestamptz else due_at end,
          finished_at = null,
          claim_token = case when ${isOver} then null else claim_token end,
          state = case when ${isOver} then 'scheduled' else state end
        where organization_id = ${organization} and id = ${taskId} and state <> 'completed'
          and case when ${isOver} then attempts = ${attempt} else state <> 'dead' and attempts > ${attempt} end`)
    }),

    untilDue: Effect.gen(function* () {
      const [first] = yield* sql<{ due_at: Date | null }>`
        select least(
          (select min(due_at) from deletion_tasks where state = 'scheduled'),
          (select min(due_at) from deletion_tasks where state = 'running')
        ) as due_at`
      const now = yield* Clock.currentTimeMillis
      return first?.due_at == null ? undefined : Duration.millis(Math.max(0, first.due_at.getTime() - now))
    }).pipe(Effect.withSpan("Scheduler.untilDue"), answered)
  }
  return scheduler
})
