/** The fake of the scheduler: tasks in memory, by the same rules as the database, but without a bound of a backlog. */
import { Array, Clock, DateTime, Duration, Effect, Equal, Order } from "effect"
import { noItems, type Outcome, type State } from "../api/DeletionTasks.ts"
import * as Tracing from "../observability/Tracing.ts"
import type { Deletions, Delivery } from "./Delivery.ts"
import {
  attemptsBesideOthers,
  type Claim,
  type ClaimLimits,
  maximumAttempts,
  type Receipt,
  RunOutcome,
  ScheduleOutcome,
  type Taken,
  type TaskFailed
} from "./Task.ts"
import { claimsOf } from "./TaskRuns.ts"

interface MemoryTask {
  readonly delivery: Delivery
  readonly receipt: Receipt
  readonly state: State
  readonly attempts: number
  readonly token: string | undefined
  /** Milliseconds since 1970; undefined when the task is completed or dead. */
  readonly dueAt: number | undefined
  /** The time of its completion, while it has its payload. */
  readonly completedAt?: number | undefined
  readonly traceParent: string | undefined
}

const byDue = Order.mapInput(Order.Number, (task: MemoryTask) => task.dueAt ?? Number.POSITIVE_INFINITY)

const mustBeAlone = (task: MemoryTask) => task.attempts >= attemptsBesideOthers

const isDead = (task: MemoryTask) => task.attempts >= maximumAttempts

const keyOf = ({ organization, taskId }: Pick<Claim, "organization" | "taskId">) =>
  JSON.stringify([organization, taskId])

/** Tasks in turns of their organizations: the first of each, then the second of each. */
const inTurns = (tasks: ReadonlyArray<MemoryTask>) => {
  const turns = new Map<string, number>()
  const withTurns = tasks.map((task) => {
    const turn = turns.get(task.delivery.organization) ?? 0
    turns.set(task.delivery.organization, turn + 1)
    return { task, turn }
  })
  return withTurns.toSorted((one, other) => one.turn - other.turn).map(({ task }) => task)
}

/** A scheduler over tasks in memory. */
export const make = (
  delay: Duration.Duration,
  runTask: (deletions: Deletions, claim: Claim) => Effect.Effect<Outcome, TaskFailed> = () => Effect.succeed(noItems)
) =>
  Effect.sync(() => {
    const tasks = new Map<string, MemoryTask>()
    let claims = 0

    const change = (task: MemoryTask, fields: Partial<MemoryTask>) => {
      tasks.set(keyOf(task.delivery), { ...task, ...fields })
    }
    const held = (claim: Claim) => {
      const task = tasks.get(keyOf(claim))
      return task?.token === claim.token && task.state === "running" ? task : undefined
    }
    /** Open tasks, or those of a state that are due, the oldest first. */
    const openTasks = (state?: State, now = Infinity) => {
      const isOpen = (task: MemoryTask) =>
        task.dueAt !== undefined && task.dueAt <= now && task.state === (state ?? task.state)
      return Array.sort([...tasks.values()].filter(isOpen), byDue)
    }
    const changeHeld = (claim: Claim, fields: (task: MemoryTask, now: number) => Partial<MemoryTask>) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const task = held(claim)
        if (task !== undefined) change(task, fields(task, now))
      })

    const take = (task: MemoryTask, leaseEnd: number): Taken => {
      const { organization, taskId, idempotencyKey } = task.delivery
      const [attempt, token] = isDead(task) ? [task.attempts, ""] : [task.attempts + 1, `claim_${++claims}`]
      if (isDead(task)) change(task, { state: "dead", dueAt: undefined })
      else change(task, { state: "running", attempts: attempt, token, dueAt: leaseEnd })
      return {
        organization,
        taskId,
        idempotencyKey,
        scheduledFor: task.receipt.scheduledFor,
        token,
        attempt,
        isTakeover: task.state === "running",
        isDead: isDead(task),
        reason: null,
        ...(task.traceParent === undefined ? {} : { traceParent: task.traceParent })
      }
    }

    return {
      schedule: (delivery: Delivery) =>
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const traceParent = yield* Tracing.currentTraceParent
          const known = tasks.get(keyOf(delivery))
          if (known !== undefined) {
            return Equal.equals([...known.delivery.fingerprint], [...delivery.fingerprint])
              ? ScheduleOutcome.Duplicate({ receipt: known.receipt })
              : ScheduleOutcome.KeyReused()
          }
          const { invoiceLinesCount, invoicesCount, taskId } = delivery
          const dueAt = now + Duration.toMillis(delay)
          const [receivedAt, scheduledFor] = [DateTime.makeUnsafe(now), DateTime.makeUnsafe(dueAt)]
          const receipt = { taskId, receivedAt, scheduledFor, invoicesCount, invoiceLinesCount }
          const task = { delivery, receipt, attempts: 0, token: undefined, dueAt, traceParent }
          tasks.set(keyOf(delivery), { ...task, state: "scheduled" })
          return ScheduleOutcome.Scheduled({ receipt })
        }),
      claim: ({ alone = 0, due = 0, except, expired = 0 }: ClaimLimits, lease: Duration.Duration) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const running = openTasks("running", now)
          const scheduled = openTasks("scheduled", now).filter(
            ({ delivery }) => except?.has(delivery.organization) !== true
          )
          const claimed = [
            ...inTurns(scheduled).slice(0, due),
            ...running.filter((task) => !mustBeAlone(task)).slice(0, expired),
            ...running.filter(mustBeAlone).slice(0, alone)
          ]
          return claimsOf(Array.sort(claimed, byDue).map((task) => take(task, now + Duration.toMillis(lease))))
        }),
      runsApart: () => false,
      renew: (renewed: ReadonlyArray<Claim>, lease: Duration.Duration) =>
        Effect.forEach(renewed, (claim) => changeHeld(claim, (_, now) => ({ dueAt: now + Duration.toMillis(lease) })), {
          discard: true
        }),
      run: Effect.fnUntraced(function* (all: ReadonlyArray<Claim>) {
        const outcomes = yield* Effect.forEach(all, (claim): Effect.Effect<RunOutcome, TaskFailed> => {
          const task = held(claim)
          return task === undefined
            ? Effect.succeed(RunOutcome.Superseded())
            : Effect.map(runTask(task.delivery.deletions, claim), (outcome) => RunOutcome.Completed({ outcome }))
        })
        const completedAt = yield* Clock.currentTimeMillis
        return Array.zipWith(all, outcomes, (claim, outcome) => {
          const task = held(claim)
          if (task === undefined) return RunOutcome.Superseded()
          change(task, { state: "completed", token: undefined, dueAt: undefined, completedAt })
          return outcome
        })
      }),
      fail: (claim: Claim, _reason: string, retryAfter: Duration.Duration) =>
        changeHeld(claim, (task, now) => ({
          token: undefined,
          state: isDead(task) ? "dead" : "scheduled",
          dueAt: isDead(task) ? undefined : now + Duration.toMillis(retryAfter)
        })),
      release: (claim: Claim) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          const task = tasks.get(keyOf(claim))
          if (task?.token === claim.token) {
            change(task, { state: "scheduled", attempts: task.attempts - 1, token: undefined, dueAt: now })
          } else if (task?.dueAt !== undefined && task.attempts > claim.attempt) {
            change(task, { attempts: task.attempts - 1 })
          }
        }),
      empty: (until: DateTime.Utc, limit: number) =>
        Effect.sync(() => {
          const old = [...tasks.values()]
            .filter(({ completedAt = Infinity }) => completedAt <= DateTime.toEpochMillis(until))
            .slice(0, limit)
          const deletions = { invoices: [], invoice_lines: [] }
          for (const task of old) change(task, { completedAt: undefined, delivery: { ...task.delivery, deletions } })
          return old.length
        }),
      untilDue: Effect.map(Clock.currentTimeMillis, (now) => {
        const [first] = openTasks()
        return first?.dueAt === undefined ? undefined : Duration.millis(Math.max(0, first.dueAt - now))
      })
    }
  })
