/**
 * The scheduler of deletion tasks: each delivery is scheduled once, and each task runs once in effect. A worker starts a task
 * in a commit of its own, which counts the attempt, and then runs it in transactions that lock its row. The lock is the
 * lease, which goes with the worker: another one starts a task again that was started `grace` ago, and whose row nobody has
 * locked. Retries.ts has the policy.
 */
import { randomUUID } from "node:crypto"
import { Clock, Context, DateTime, Duration, Effect, Layer, MutableRef, Schema, Struct } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { Outcome } from "../api/DeletionTasks.ts"
import { decodeRows } from "../database/Columns.ts"
import { type Database, TaskDatabase } from "../database/Database.ts"
import { safeReason } from "../database/SqlFailure.ts"
import * as Backlog from "./Backlog.ts"
import { type Delivery, Receipt, makeReceipt } from "./Delivery.ts"
import * as Marks from "./Marks.ts"
import { TaskId } from "./Marks.ts"
import { isPassing, maximumAttempts } from "./Retries.ts"

/** The task store does not answer. The call may have had its effect; every call may be repeated. */
export class SchedulerUnavailable extends Schema.TaggedError<SchedulerUnavailable>()("SchedulerUnavailable", {
  message: Schema.String
}) {}

/** Runs statements in time, in the turn of a key. */
export const inTime =
  (sql: Database, key: string, within: Duration.Duration) =>
  <A, E>(statements: Effect.Effect<A, SqlError | E>) =>
    sql.run({ key, within, unavailable: ({ reason }) => new SchedulerUnavailable({ message: reason }) }, statements)

/** A task failed for a reason of its own, which another attempt may meet again: the attempt counts. */
export class TaskFailed extends Schema.TaggedError<TaskFailed>()("TaskFailed", { message: Schema.String }) {}

/** Others hold rows of a task, or an outage ended it: the attempt does not count. All rows that nobody holds may be marked. */
export class TaskPostponed extends Schema.TaggedError<TaskPostponed>()("TaskPostponed", { message: Schema.String }) {}

/**
 * The result of scheduling a delivery. `duplicate`: it was stored before, with this receipt. `key_reused`: its key was used
 * with another payload. `full`: the backlog of its organization, or of all unknown ones, is at its bound. The last two store
 * nothing.
 */
export type ScheduleOutcome =
  | { readonly status: "scheduled" | "duplicate"; readonly receipt: Receipt }
  | { readonly status: "key_reused" }
  | { readonly status: "full" }

/** An attempt at a task that was started, or that is dead because its workers stopped during its last attempts. */
const Claim = Schema.Struct({
  ...TaskId.fields,
  idempotencyKey: Schema.String,
  scheduledFor: Schema.DateTimeUtcFromDate,
  token: Schema.String,
  /** The number of the attempt, from 1. */
  attempt: Schema.Int,
  /** True if the worker of the attempt before has stopped. */
  isTakeover: Schema.Boolean,
  isDead: Schema.Boolean,
  lastError: Schema.NullOr(Schema.String)
})
export type Claim = typeof Claim.Type

const Result = Schema.Union([
  Outcome,
  Schema.Struct({ postponed: Schema.String }),
  Schema.Struct({ failed: Schema.String }),
  Schema.Struct({ more: Schema.Literal(true) })
])

type Answer<A, E = never> = Effect.Effect<A, SchedulerUnavailable | E>

export class Scheduler extends Context.Service<
  Scheduler,
  {
    /** Stores a task for a delivery. Waits for a delivery of the same key that is being stored. */
    readonly schedule: (delivery: Delivery) => Answer<ScheduleOutcome>
    /** Due tasks, in turns of their organizations. */
    readonly due: (limit: number) => Answer<ReadonlyArray<TaskId>>
    /** Starts an attempt, and counts it. Undefined if another worker has the task. */
    readonly start: (task: TaskId) => Answer<Claim | undefined>
    /** Runs the task of an attempt: its outcome, or undefined if another worker has the task. */
    readonly run: (claim: Claim) => Answer<Outcome | undefined, TaskFailed | TaskPostponed>
    /** Ends an attempt that counts: another one follows after a while, or the task is `dead`. */
    readonly fail: (claim: Claim, reason: string, after: Duration.Duration) => Answer<void>
    /** Takes an attempt back: another one follows after a while. */
    readonly postpone: (claim: Claim, after: Duration.Duration) => Answer<void>
  }
>()("practice-data/deletions/Scheduler") {
  /** Tasks in the table `deletion_tasks`. `delay`: from receiving a delivery to running it. */
  static readonly layer = (delay: Duration.Duration) => Layer.effect(Scheduler, makeScheduler(delay))
}

/** Senders get a response within two seconds, so the store has less. */
const deliveryTimeout = Duration.millis(1300)

/** From the start of an attempt, or of one of its transactions, to the lock of the row. */
const grace = Duration.seconds(1)

/** The longest that an attempt marks the rows of a large task, and that any attempt runs. */
const longest = { marking: Duration.seconds(30), run: Duration.minutes(1) }

/** The most items of an organization that are remembered until their row comes. */
const mostRemembered = 100_000

const receipts = decodeRows(Schema.Struct({ ...Receipt.fields, isSame: Schema.Boolean }))
const dues = decodeRows(Schema.Struct({ ...TaskId.fields, earliest: Schema.DateTimeUtcFromDate }))
const starts = decodeRows(Claim)
const results = decodeRows(Schema.Struct({ result: Schema.NullOr(Result) }))

/**
 * The time before which no task was due a moment ago. While a dump is open, Postgres keeps what finished tasks left in the
 * index, and each look from the beginning reads all of it: there is one a minute.
 */
const makeFloor = () => {
  const beginning = DateTime.makeUnsafe(0)
  const floor = MutableRef.make({ since: beginning, fullAt: 0n })
  return {
    since: Effect.map(Clock.monotonicTimeNanos, (now) => {
      const { fullAt, since } = floor.current
      if (now < fullAt) return since
      MutableRef.set(floor, { since, fullAt: now + 60_000_000_000n })
      return beginning
    }),
    found: (now: DateTime.Utc, earliest = now) =>
      MutableRef.update(floor, ({ fullAt }) => ({
        fullAt,
        since: DateTime.min(DateTime.subtract(now, { minutes: 1 }), earliest)
      }))
  }
}

/** A scheduler over the task database. `delay`: from receiving a delivery to running it. */
export const makeScheduler = Effect.fnUntraced(function* (
  delay: Duration.Duration,
  bounds: Backlog.Bounds = Backlog.bounds,
  most = mostRemembered
): Effect.fn.Return<Scheduler["Service"], never, TaskDatabase> {
  const sql = yield* TaskDatabase
  const room = Backlog.makeRoom(bounds, Backlog.counting(sql, bounds))
  const floor = makeFloor()

  const at = (time: DateTime.Utc) => sql`${DateTime.formatIso(time)}::timestamptz`
  const isTask = ({ organization, taskId }: TaskId) => sql`organization_id = ${organization} and id = ${taskId}::uuid`
  const isHolder = ({ token }: Claim) => sql`claim_token = ${token}::uuid`

  // It has time, but must not wait until the system gives up a silent connection.
  const asWorker = inTime(sql, "the worker", Duration.seconds(5))

  const toOutcome = Effect.fnUntraced(function* (result: typeof Result.Type | null | undefined) {
    if (result == null || "more" in result) return undefined
    if ("postponed" in result) return yield* new TaskPostponed({ message: result.postponed })
    if ("failed" in result) return yield* new TaskFailed({ message: result.failed })
    return result
  })

  /** Marks the rows of a task: in one transaction, or if it has very many, in several. */
  const runTask = Effect.fnUntraced(
    function* ({ organization, taskId, token }: Claim) {
      const attempt = Effect.map(DateTime.now, (now) => sql`${taskId}::uuid, ${token}::uuid, ${at(now)}`)
      const bound = sql`${most}::integer`
      const [ran] = yield* results(sql`select run_deletion(${organization}, ${yield* attempt}, ${bound}) as result`)
      if (ran?.result == null || !("more" in ran.result)) return yield* toOutcome(ran?.result)
      const marked = yield* Effect.timeoutOrElse(Marks.apply(sql, { organization, ids: [taskId] }, attempt), {
        duration: longest.marking,
        orElse: () => Effect.fail(new TaskPostponed({ message: "It has more rows" }))
      })
      const { locked, reason, refused } = marked
      const [ended] = yield* results(sql`
      select finish_deletion(
        ${organization}, ${yield* attempt}, ${bound}, ${locked}::integer, ${refused}::text[], ${reason}::text
      ) as result`)
      return yield* toOutcome(ended?.result)
    },
    Effect.catchTag("Superseded", () => Effect.undefined)
  )

  return {
    schedule: Effect.fn("Scheduler.schedule")(
      function* (delivery): Effect.fn.Return<ScheduleOutcome, SqlError> {
        const { fingerprint, organization, taskId } = delivery
        const receipt = yield* makeReceipt(delivery, delay)
        const [receivedAt, scheduledFor] = [at(receipt.received_at), at(receipt.scheduled_for)]
        const { hasRoom, isKnown } = yield* room(organization)
        const row = sql`
          ${organization}, ${taskId}, ${delivery.idempotencyKey}, ${fingerprint},
          ${sql.json(delivery.deletions)}::jsonb, ${isKnown}, ${receipt.invoices_count}, ${receipt.invoice_lines_count},
          ${receivedAt}, ${scheduledFor}, ${scheduledFor}`
        // Waits for a delivery of the same key that is being stored. The winner is read in a statement of its own,
        // since this one does not see what was committed after it began.
        const insert = sql`
          insert into deletion_tasks (
            organization_id, id, idempotency_key, fingerprint, payload, is_known,
            invoices_count, invoice_lines_count, received_at, scheduled_for, due_at
          ) values (${row})
          on conflict (organization_id, id) do nothing returning 1`
        if (hasRoom && (yield* insert).length > 0) return { status: "scheduled", receipt }
        // The commit of the first may have been given up while it waited for a synchronous standby: then only this server has
        // its task. The message makes this statement write, so that its commit waits for the standby as well.
        const [first] = yield* receipts(sql`
          select received_at, scheduled_for, invoices_count, invoice_lines_count, fingerprint = ${fingerprint} as "isSame",
            pg_logical_emit_message(true, 'practice_data', '')::text
          from deletion_tasks where organization_id = ${organization} and id = ${taskId}`)
        if (first === undefined) return { status: "full" }
        if (!first.isSame) return { status: "key_reused" }
        return { status: "duplicate", receipt: Struct.omit(first, ["isSame"]) }
      },
      (statements, { organization }) => inTime(sql, `organization ${organization}`, deliveryTimeout)(statements)
    ),

    // The oldest of each organization, then the second, and so on; first those that were started.
    due: Effect.fnUntraced(function* (limit) {
      const now = yield* DateTime.now
      const found = yield* dues(sql`
        select organization_id as organization, id as "taskId", earliest from (
          select organization_id, id, due_at, state, min(due_at) over () as earliest,
            row_number() over (partition by organization_id order by state = 'running' desc, due_at) as turn
          from deletion_tasks
          where state in ('scheduled', 'running') and due_at between ${at(yield* floor.since)} and ${at(now)}
        ) due order by turn, state = 'running' desc, due_at limit ${sql.literal(`${limit}`)}`)
      floor.found(now, found[0]?.earliest)
      return found
    }, asWorker),

    start: Effect.fnUntraced(function* (task) {
      const now = yield* DateTime.now
      const [started] = yield* starts(sql`
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
          last_error = case when is_dead then coalesce(last_error, 'The worker stopped during the attempt') else last_error end
        from task where t.organization_id = ${task.organization} and t.id = task.id
        returning t.organization_id as organization, t.id as "taskId", t.idempotency_key as "idempotencyKey",
          t.scheduled_for as "scheduledFor", t.claim_token as token, t.attempts as attempt, task.is_takeover as "isTakeover",
          task.is_dead as "isDead", t.last_error as "lastError"`)
      return started
    }, asWorker),

    run: Effect.fn("Scheduler.run")(
      (claim) =>
        runTask(claim).pipe(
          Effect.catchTag("SqlError", (error) => {
            const Ended = isPassing(error) ? TaskPostponed : TaskFailed
            return Effect.fail(new Ended({ message: safeReason(error) }))
          }),
          Effect.timeoutOrElse({
            duration: longest.run,
            orElse: () =>
              Effect.fail(new TaskFailed({ message: `It took longer than ${Duration.format(longest.run)}` }))
          })
        ),
      inTime(sql, "the tasks", Duration.seconds(65))
    ),

    fail: Effect.fnUntraced(function* (claim, reason, after) {
      const now = yield* DateTime.now
      const isLast = sql`attempts >= ${maximumAttempts}::integer`
      yield* sql`
        update deletion_tasks set
          state = case when ${isLast} then 'dead' else 'scheduled' end,
          due_at = case when ${isLast} then null else ${at(DateTime.addDuration(now, after))} end,
          finished_at = case when ${isLast} then ${at(now)} end,
          claim_token = null, last_error = ${reason}
        where ${isTask(claim)} and ${isHolder(claim)} and state = 'running'`
    }, asWorker),

    // Another worker may have started the task since.
    postpone: Effect.fnUntraced(function* (claim, after) {
      const dueAt = at(DateTime.addDuration(yield* DateTime.now, after))
      yield* sql`
        update deletion_tasks set
          attempts = attempts - 1,
          state = case when ${isHolder(claim)} then 'scheduled' else state end,
          due_at = case when ${isHolder(claim)} then ${dueAt} else due_at end,
          claim_token = case when ${isHolder(claim)} then null else claim_token end
        where ${isTask(claim)} and state in ('scheduled', 'running')
          and (${isHolder(claim)} or attempts > ${claim.attempt}::integer)`
    }, asWorker)
  }
})
