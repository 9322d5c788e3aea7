/** The fake of the scheduler: tasks in memory, by the same rules as the database. */
import { Array, Clock, DateTime, Duration, Effect, Equal, Order } from "effect"
import type { Outcome, State } from "../api/DeletionTasks.ts"
import * as Backlog from "./Backlog.ts"
import type { Deletions, Delivery } from "./Delivery.ts"
import * as Tracing from "../observability/Tracing.ts"
import { report } from "./TaskReport.ts"
import {
  attemptsBesideOthers,
  type Claim,
  type ClaimLimits,
  maximumAttempts,
  type Receipt,
  RunOutcome,
  ScheduleOutcome,
  type TaskFailed
} from "./Task.ts"
import * as Turns from "./Turns.ts"

interface MemoryTask {
  readonly delivery: Delivery
  readonly receipt: Receipt
  readonly state: State
  readonly attempts: number
  readonly token: string | undefined
  /** Milliseconds since 1970; undefined when the task is completed or dead. */
  readonly dueAt: number | undefined
  /** When it was completed, while it still has its payload. */
  readonly completedAt?: number | undefined
  readonly traceParent: string | undefined
}

const noItems: Outcome = {
  invoices: { deleted: 0, not_found: 0, clinic_mismatch: 0, client_mismatch: 0 },
  invoice_lines: { deleted: 0, not_found: 0, invoice_mismatch: 0, clinic_mismatch: 0 },
  lines_of_invoices: 0
}

const byDue = Order.mapInput(Order.Number, (task: MemoryTask) => task.dueAt ?? Number.POSITIVE_INFINITY)

const mustBeAlone = (task: MemoryTask) => task.attempts >= attemptsBesideOthers

const claimOf = (task: MemoryTask, token: string, attempt: number): Claim => ({
  organization: task.delivery.organization,
  taskId: task.delivery.taskId,
  idempotencyKey: task.delivery.idempotencyKey,
  scheduledFor: task.receipt.scheduledFor,
  isTakeover: task.state === "running",
  token,
  attempt,
  ...(task.traceParent === undefined ? {} : { traceParent: task.traceParent })
})

const sizeOf = ({ deletions }: Delivery) => JSON.stringify(deletions).length

const isDead = (task: MemoryTask) => task.attempts >= maximumAttempts

const keyOf = (organization: string, taskId: string) => JSON.stringify([organization, taskId])

/** A scheduler over tasks in memory. */
export const make = (
  delay: Duration.Duration,
  runTask: (deletions: Deletions, claim: Claim) => Effect.Effect<Outcome, TaskFailed> = () => Effect.succeed(noItems),
  bounds: Backlog.Bounds = Backlog.bounds
) =>
  Effect.sync(() => {
    const tasks = new Map<string, MemoryTask>()
    let claims = 0
    const turns = Turns.make()
    const hasRoom = Backlog.make(bounds)
    /** No organization has a row here. */
    const pendingOf = (organization: string): Backlog.Pending => {
      const theirs = [...tasks.values()].filter(
        ({ delivery, state }) => delivery.organization === organization && state === "scheduled"
      )
      return {
        tasks: theirs.length,
        bytes: theirs.reduce((sum, { delivery }) => sum + sizeOf(delivery), 0),
        isKnown: false
      }
    }
    const held = ({ organization, taskId, token }: Claim) => {
      const task = tasks.get(keyOf(organization, taskId))
      return task?.token === token && task.state === "running" ? task : undefined
    }
    const change = (task: MemoryTask, fields: Partial<MemoryTask>) => {
      tasks.set(keyOf(task.delivery.organization, task.delivery.taskId), { ...task, ...fields })
    }
    const openTasks = () =>
      Array.sort(
        [...tasks.values()].filter((task) => task.dueAt !== undefined),
        byDue
      )

    return {
      schedule: (delivery: Delivery) =>
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const traceParent = yield* Tracing.currentTraceParent
          const { organization } = delivery
          const counting = Effect.sync(() => pendingOf(organization))
          const isFull = !(yield* hasRoom(organization, sizeOf(delivery), counting))
          const key = keyOf(organization, delivery.taskId)
          const known = tasks.get(key)
          if (known !== undefined) {
            return Equal.equals([...known.delivery.fingerprint], [...delivery.fingerprint])
              ? ScheduleOutcome.Duplicate({ receipt: known.receipt })
              : ScheduleOutcome.KeyReused()
          }
          if (isFull) return ScheduleOutcome.Full()
          const dueAt = now + Duration.toMillis(delay)
          const receipt: Receipt = {
            taskId: delivery.taskId,
            receivedAt: DateTime.makeUnsafe(now),
            scheduledFor: DateTime.makeUnsafe(dueAt),
            invoicesCount: delivery.invoicesCount,
            invoiceLinesCount: delivery.invoiceLinesCount
          }
          tasks.set(key, { delivery, receipt, state: "scheduled", attempts: 0, token: undefined, dueAt, traceParent })
          return ScheduleOutcome.Scheduled({ receipt })
        }),
      claim: ({ due = 0, expired = 0, alone = 0, except }: ClaimLimits, lease: Duration.Duration) =>
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const open = openTasks().filter((task) => (task.dueAt ?? now) <= now)
          const running = open.filter((task) => task.state === "running")
          const scheduled = open.filter((task) => task.state === "scheduled")
          const byOwner = Array.groupBy(scheduled, ({ delivery }) => delivery.organization)
          const visit = (after: string) =>
            Effect.succeed(
              Object.entries(byOwner)
                .map(([organization, { length: dueTasks }]) => ({ organization, due: dueTasks }))
                .filter(({ organization }) => organization > after)
                .toSorted((one, other) => (one.organization < other.organization ? -1 : 1))
                .slice(0, Turns.mostVisits)
                .map((each, index) => ({ ...each, visits: index + 1 }))
            )
          const shares = except === undefined ? yield* turns.next(due, visit) : yield* turns.others(except, due, visit)
          const inTurn = shares.flatMap(({ organization, tasks: some }) => byOwner[organization]?.slice(0, some) ?? [])
          const others = scheduled.filter((task) => except === undefined && !inTurn.includes(task))
          const fresh = [...inTurn, ...others].slice(0, due)
          if (except === undefined && due > 0) turns.note(fresh.length === due)
          const claimed = [
            ...fresh,
            ...running.filter((task) => !mustBeAlone(task)).slice(0, expired),
            ...running.filter(mustBeAlone).slice(0, alone)
          ]
          const dead = claimed.filter(isDead)
          for (const task of dead) change(task, { state: "dead", dueAt: undefined })
          const made = Array.sort(claimed, byDue).flatMap((task) => {
            if (isDead(task)) return []
            const [attempt, token] = [task.attempts + 1, `claim_${++claims}`]
            change(task, { state: "running", attempts: attempt, token, dueAt: now + Duration.toMillis(lease) })
            return [claimOf(task, token, attempt)]
          })
          yield* Effect.forEach(dead, (task) => report(claimOf(task, "", task.attempts), { result: "dead" }))
          return made
        }),
      runsApart: () => false,
      renew: (renewed: ReadonlyArray<Claim>, lease: Duration.Duration) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          for (const claim of renewed) {
            const task = held(claim)
            if (task !== undefined) change(task, { dueAt: now + Duration.toMillis(lease) })
          }
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
        Effect.map(Clock.currentTimeMillis, (now) => {
          const task = held(claim)
          if (task === undefined) return
          const isLast = task.attempts >= maximumAttempts
          const next = isLast
            ? ({ state: "dead", dueAt: undefined } as const)
            : ({ state: "scheduled", dueAt: now + Duration.toMillis(retryAfter) } as const)
          change(task, { ...next, token: undefined })
        }),
      release: ({ organization, taskId, token, attempt }: Claim) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          const task = tasks.get(keyOf(organization, taskId))
          if (task?.token === token) {
            change(task, { state: "scheduled", attempts: task.attempts - 1, token: undefined, dueAt: now })
          } else if (task?.dueAt !== undefined && task.attempts > attempt) {
            change(task, { attempts: task.attempts - 1 })
          }
        }),
      empty: (until: DateTime.Utc, limit: number) =>
        Effect.sync(() => {
          const old = [...tasks.values()]
            .filter(({ completedAt = Infinity }) => completedAt <= DateTime.toEpochMillis(until))
            .slice(0, limit)
          for (const task of old) {
            const deletions = { invoices: [], invoice_lines: [] }
            change(task, { completedAt: undefined, delivery: { ...task.delivery, deletions } })
          }
          return old.length
        }),
      untilDue: Effect.map(Clock.currentTimeMillis, (now) => {
        const [first] = openTasks()
        return first?.dueAt === undefined ? undefined : Duration.millis(Math.max(0, first.dueAt - now))
      })
    }
  })
