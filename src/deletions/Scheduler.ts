/**
 * The scheduler of deletion tasks: each delivery is scheduled once, and each task runs once in effect.
 *
 * A worker claims a task for a lease. The claim counts an attempt, in a commit of its own, and carries a token. A
 * worker runs a task in one transaction that checks the token first: if another worker has claimed the task since, it
 * changes nothing.
 *
 * Attempts are counted when they begin, because a worker that dies cannot report anything. Only its worker knows that
 * an outage ended an attempt, and another worker may have taken the task over meanwhile: `release` takes the attempt
 * back in either case.
 */
import { Array, Clock, Context, DateTime, Duration, Effect, Equal, Layer, Order } from "effect"
import { noItems, type Outcome, type State } from "../api/DeletionTasks.ts"
import * as Tracing from "../observability/Tracing.ts"
import type { Deletions, Delivery } from "./Delivery.ts"
import * as Postgres from "./SchedulerPostgres.ts"
import {
  attemptsBesideOthers,
  byOrganization,
  type Claim,
  type ClaimLimits,
  maximumAttempts,
  type Receipt,
  RunOutcome,
  ScheduleOutcome,
  type SchedulerUnavailable,
  type Taken,
  type TaskFailed
} from "./Task.ts"
import { claimsOf } from "./TaskRuns.ts"

type RunTask = (deletions: Deletions, claim: Claim) => Effect.Effect<Outcome, TaskFailed>

type Answer<A, E = never> = Effect.Effect<A, SchedulerUnavailable | E>

export class Scheduler extends Context.Service<
  Scheduler,
  {
    /** Stores a task for a delivery. Waits for a delivery of the same key that is being stored. */
    readonly schedule: (delivery: Delivery) => Answer<ScheduleOutcome>
    /** Claims tasks for a lease, oldest first. A task whose attempts are used up becomes `dead` instead. */
    readonly claim: (limits: ClaimLimits, lease: Duration.Duration) => Answer<ReadonlyArray<Claim>>
    /** The heartbeat: leases begin again now. */
    readonly renew: (claims: ReadonlyArray<Claim>, lease: Duration.Duration) => Answer<void>
    /** True if tasks of several organizations are on different servers, and better not run together. */
    readonly runsApart: () => boolean
    /** Runs tasks and marks them completed, in one transaction: all or, when one fails, none. */
    readonly run: (claims: ReadonlyArray<Claim>) => Answer<ReadonlyArray<RunOutcome>, TaskFailed>
    /** Schedules a failed task for another attempt after a while. After its last attempt, marks it `dead`. */
    readonly fail: (claim: Claim, reason: string, retryAfter: Duration.Duration) => Answer<void>
    /** Takes the attempt back. If the worker still holds the task, the task is due at once. May be repeated. */
    readonly release: (claim: Claim) => Answer<void>
    /** Empties payloads of tasks that were completed until a time, oldest first. Returns the number of tasks. */
    readonly empty: (until: DateTime.Utc, limit: number) => Answer<number>
    /** The time until a task is due or a lease expires; undefined if no task is open. */
    readonly untilDue: Answer<Duration.Duration | undefined>
  }
>()("practice-data/deletions/Scheduler") {
  /**
   * Tasks in the table `deletion_tasks`.
   *
   * @param delay from receiving a delivery to running it
   */
  static readonly layer = (delay: Duration.Duration) => Layer.effect(Scheduler, Postgres.make({ delay }))

  /**
   * The fake: tasks in memory, by the same rules as the database, but without a bound of a backlog.
   *
   * @param delay from receiving a delivery to running it
   * @param runTask the effect of a task; by default none
   */
  static readonly layerMemory = (delay: Duration.Duration, runTask?: RunTask) =>
    Layer.effect(Scheduler, memory(delay, runTask))
}

/** A task of the fake. */
interface MemoryTask {
  readonly delivery: Delivery
  readonly receipt: Receipt
  readonly traceParent: string | undefined
  state: State
  attempts: number
  token: string | undefined
  /** Milliseconds since 1970; undefined when the task is completed or dead. */
  dueAt: number | undefined
  /** The time of its completion, while it has its payload. */
  completedAt: number | undefined
}

const byDue = Order.mapInput(Order.Number, ({ dueAt = Infinity }: MemoryTask) => dueAt)

const mustBeAlone = (task: MemoryTask) => task.attempts >= attemptsBesideOthers

const isDead = (task: MemoryTask) => task.attempts >= maximumAttempts

const memory = (delay: Duration.Duration, runTask: RunTask = () => Effect.succeed(noItems)) =>
  Effect.sync(() => {
    const tasks = new Map<string, MemoryTask>()
    const lastClaims = new Map<string, number>()
    let claims = 0

    const held = (claim: Claim) => {
      const task = tasks.get(claim.taskId)
      return task?.token === claim.token && task.state === "running" ? task : undefined
    }
    const changeHeld = (claim: Claim, fields: (task: MemoryTask, now: number) => Partial<MemoryTask>) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const task = held(claim)
        if (task !== undefined) Object.assign(task, fields(task, now))
      })
    /** The open tasks that are due until a time, the oldest first. */
    const dueTasks = (until = Infinity) =>
      Array.sort(
        [...tasks.values()].filter(({ dueAt }) => dueAt !== undefined && dueAt <= until),
        byDue
      )

    /** Tasks in turns of their organizations: the first of each, then the second. The last to be claimed is last. */
    const inTurns = (some: ReadonlyArray<MemoryTask>) => {
      const groups = byOrganization(some.map((task) => ({ organization: task.delivery.organization, task })))
      const turns = Array.sortWith(groups, ([{ organization }]) => lastClaims.get(organization) ?? 0, Order.Number)
      const all = turns.flatMap((group) => group.map(({ task }, turn) => ({ task, turn })))
      return Array.sortWith(all, ({ turn }) => turn, Order.Number).map(({ task }) => task)
    }

    const take = (task: MemoryTask, leaseEnd: number): Taken => {
      const { attempts, delivery, receipt, state, traceParent = null } = task
      const { idempotencyKey, organization, taskId } = delivery
      const known = { organization, taskId, idempotencyKey, scheduledFor: receipt.scheduledFor, traceParent }
      const taken = { ...known, isTakeover: state === "running", reason: null }
      if (isDead(task)) {
        Object.assign(task, { state: "dead", dueAt: undefined })
        return { ...taken, token: "", attempt: attempts, isDead: true }
      }
      const token = `claim_${++claims}`
      lastClaims.set(organization, claims)
      Object.assign(task, { state: "running", attempts: attempts + 1, token, dueAt: leaseEnd })
      return { ...taken, token, attempt: attempts + 1, isDead: false }
    }

    return Scheduler.of({
      schedule: (delivery) =>
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const traceParent = yield* Tracing.currentTraceParent
          const known = tasks.get(delivery.taskId)
          if (known !== undefined) {
            return Equal.equals([...known.delivery.fingerprint], [...delivery.fingerprint])
              ? ScheduleOutcome.Duplicate({ receipt: known.receipt })
              : ScheduleOutcome.KeyReused()
          }
          const { invoiceLinesCount, invoicesCount, taskId } = delivery
          const dueAt = now + Duration.toMillis(delay)
          const [receivedAt, scheduledFor] = [DateTime.makeUnsafe(now), DateTime.makeUnsafe(dueAt)]
          const receipt = { taskId, receivedAt, scheduledFor, invoicesCount, invoiceLinesCount }
          const task = { delivery, receipt, traceParent, attempts: 0, dueAt, token: undefined, completedAt: undefined }
          tasks.set(taskId, { ...task, state: "scheduled" })
          return ScheduleOutcome.Scheduled({ receipt })
        }),
      claim: ({ alone = 0, due = 0, except, expired = 0 }, lease) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const open = dueTasks(now)
          const running = open.filter(({ state }) => state === "running")
          const scheduled = open.filter(
            ({ delivery, state }) => state === "scheduled" && except?.has(delivery.organization) !== true
          )
          const claimed = [
            ...inTurns(scheduled).slice(0, due),
            ...running.filter((task) => !mustBeAlone(task)).slice(0, expired),
            ...running.filter(mustBeAlone).slice(0, alone)
          ]
          return claimsOf(Array.sort(claimed, byDue).map((task) => take(task, now + Duration.toMillis(lease))))
        }),
      runsApart: () => false,
      renew: (all, lease) => {
        const renewed = (_: MemoryTask, now: number) => ({ dueAt: now + Duration.toMillis(lease) })
        return Effect.forEach(all, (claim) => changeHeld(claim, renewed), { discard: true })
      },
      run: Effect.fnUntraced(function* (all) {
        const outcomes = yield* Effect.forEach(all, (claim) => {
          const task = held(claim)
          return task === undefined ? Effect.undefined : runTask(task.delivery.deletions, claim)
        })
        const completedAt = yield* Clock.currentTimeMillis
        return Array.zipWith(all, outcomes, (claim, outcome) => {
          const task = held(claim)
          if (task === undefined || outcome === undefined) return RunOutcome.Superseded()
          Object.assign(task, { state: "completed", token: undefined, dueAt: undefined, completedAt })
          return RunOutcome.Completed({ outcome })
        })
      }),
      fail: (claim, _reason, retryAfter) =>
        changeHeld(claim, (task, now) => ({
          token: undefined,
          state: isDead(task) ? "dead" : "scheduled",
          dueAt: isDead(task) ? undefined : now + Duration.toMillis(retryAfter)
        })),
      release: (claim) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          const task = tasks.get(claim.taskId)
          if (task?.token === claim.token) {
            Object.assign(task, { state: "scheduled", attempts: task.attempts - 1, token: undefined, dueAt: now })
          } else if (task?.dueAt !== undefined && task.attempts > claim.attempt) {
            task.attempts -= 1
          }
        }),
      empty: (until, limit) =>
        Effect.sync(() => {
          const old = [...tasks.values()]
            .filter(({ completedAt = Infinity }) => completedAt <= DateTime.toEpochMillis(until))
            .slice(0, limit)
          for (const task of old) task.completedAt = undefined
          return old.length
        }),
      untilDue: Effect.map(Clock.currentTimeMillis, (now) => {
        const [first] = dueTasks()
        return first?.dueAt === undefined ? undefined : Duration.millis(Math.max(0, first.dueAt - now))
      })
    })
  })
