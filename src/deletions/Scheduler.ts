/**
 * The scheduler of deletion tasks: each delivery is scheduled once, and each task runs once in effect. WorkerTasks.ts has the
 * statements of a worker, Retries.ts the policy.
 */
import { Context, DateTime, Duration, Effect, Layer, Schema, Struct } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { rowsOf } from "../database/Columns.ts"
import { TaskDatabase } from "../database/Database.ts"
import { type Failure, reasonOf } from "../database/SqlFailure.ts"
import * as Tracing from "../observability/Tracing.ts"
import * as Backlog from "./Backlog.ts"
import { type Deletions, type Delivery, Receipt, receiptOf } from "./Delivery.ts"
import type { TaskId } from "./Marks.ts"
import { failureKind } from "./Retries.ts"
import * as Run from "./Run.ts"
import * as WorkerTasks from "./WorkerTasks.ts"

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
 * at its bound. Both store nothing.
 */
export type ScheduleOutcome =
  | { readonly status: "scheduled" | "duplicate"; readonly receipt: Receipt }
  | { readonly status: "key_reused" }
  | { readonly status: "full" }

type Answer<A, E = never> = Effect.Effect<A, SchedulerUnavailable | E>

export class Scheduler extends Context.Service<
  Scheduler,
  {
    /** Stores a task for a delivery. Waits for a delivery of the same key that is being stored. */
    readonly schedule: (delivery: Delivery) => Answer<ScheduleOutcome>
    /** Due tasks, in turns of their organizations, with their attempts so far. */
    readonly due: (limit: number) => Answer<ReadonlyArray<WorkerTasks.Due>>
    /** Starts an attempt, and counts it. Undefined if another worker has the task. */
    readonly start: (task: TaskId) => Answer<WorkerTasks.Started | undefined>
    /** Runs the task of an attempt. Fails with `TaskFailed` if nothing could be done, and the attempt counts. */
    readonly run: (claim: WorkerTasks.Claim) => Answer<Run.RunOutcome, TaskFailed>
    /** Ends an attempt that counts: another one follows after a while, or the task is `dead`. */
    readonly fail: (claim: WorkerTasks.Claim, reason: string, after: Duration.Duration) => Answer<void>
    /** Takes an attempt back: another one follows after a while. */
    readonly postpone: (claim: WorkerTasks.Claim, after: Duration.Duration) => Answer<void>
    /**
     * Empties payloads of tasks that were completed or cancelled until a time, oldest first, and forgets their items that
     * were not deleted. Returns the number of tasks.
     */
    readonly empty: (until: DateTime.Utc, limit: number) => Answer<number>
  }
>()("practice-data/deletions/Scheduler") {
  /** Tasks in the table `deletion_tasks`. `delay`: from receiving a delivery to running it. */
  static readonly layer = (delay: Duration.Duration) => Layer.effect(Scheduler, makeScheduler(delay))
}

const stored = rowsOf(Schema.Struct({ ...Receipt.fields, isSame: Schema.Boolean }))

const unavailable = SchedulerUnavailable.from

/** Senders get a response within two seconds, so the store has less. */
const deliveryTimeout = Duration.millis(1300)

/** The worker has time, but must not wait until the system gives up a silent connection. */
const worker = { key: "the worker", within: Duration.seconds(5), unavailable } as const

/** Tasks run beside the worker's other statements. */
const tasks = { key: "the tasks", within: Duration.seconds(65), unavailable } as const

const longestRun = Duration.minutes(1)

const payloadText = (deletions: Deletions) => JSON.stringify(deletions)

/** A scheduler over the task database. `delay`: from receiving a delivery to running it. */
export const makeScheduler = Effect.fnUntraced(function* (
  delay: Duration.Duration,
  bounds: Backlog.Bounds = Backlog.bounds,
  mostRemembered = Run.mostRemembered
): Effect.fn.Return<Scheduler["Service"], never, TaskDatabase> {
  const sql = yield* TaskDatabase
  const asWorker = <A>(statements: Effect.Effect<A, SqlError>) => sql.run(worker, statements)

  const at = (time: DateTime.Utc) => sql`${DateTime.formatIso(time)}::timestamptz`
  const store = WorkerTasks.make(sql)
  const runTask = Run.make(sql, mostRemembered)
  const room = Backlog.makeRoom(bounds, Backlog.counting(sql, bounds))

  return {
    schedule: Effect.fn("Scheduler.schedule")(
      function* (delivery): Effect.fn.Return<ScheduleOutcome, SqlError> {
        const { fingerprint, organization, taskId } = delivery
        const receipt = yield* receiptOf(delivery, delay)
        const [receivedAt, scheduledFor] = [at(receipt.received_at), at(receipt.scheduled_for)]
        const ownTrace = (yield* Tracing.currentTraceParent) ?? null
        const { hasRoom, isKnown } = yield* room(organization)
        const row = sql`
          ${organization}, ${taskId}, ${delivery.idempotencyKey}, ${fingerprint},
          ${payloadText(delivery.deletions)}::jsonb, ${isKnown}, ${receipt.invoices_count}, ${receipt.invoice_lines_count},
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
        if (first === undefined) return { status: "full" }
        if (!first.isSame) return { status: "key_reused" }
        return { status: "duplicate", receipt: Struct.omit(first, ["isSame"]) }
      },
      (statements, { organization }) =>
        sql.run({ key: `organization ${organization}`, within: deliveryTimeout, unavailable }, statements)
    ),

    due: (limit) => asWorker(store.due(limit)),
    start: (task) => Effect.map(asWorker(store.start(task)), ([started]) => started),
    run: Effect.fn("Scheduler.run")((claim) =>
      sql.run(
        tasks,
        runTask(claim).pipe(
          Effect.catch((error): Effect.Effect<Run.RunOutcome, TaskFailed> => {
            const reason = reasonOf(error)
            return failureKind(error) === "permanent"
              ? Effect.fail(new TaskFailed({ message: reason }))
              : Effect.succeed({ postponed: reason })
          }),
          Effect.timeoutOrElse({
            duration: longestRun,
            orElse: () => Effect.fail(new TaskFailed({ message: `It took longer than ${Duration.format(longestRun)}` }))
          })
        )
      )
    ),
    fail: (claim, reason, after) => Effect.asVoid(asWorker(store.fail(claim, reason, after))),
    postpone: (claim, after) => Effect.asVoid(asWorker(store.postpone(claim, after))),
    empty: Effect.fnUntraced(function* (until, limit) {
      const old = yield* asWorker(store.ended(until, limit))
      // Each by itself: the items of many may take longer than the worker has.
      for (const task of old) yield* asWorker(store.empty(task))
      return old.length
    })
  }
})
