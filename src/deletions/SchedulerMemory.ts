/** The fake of the scheduler: tasks in memory, by the same rules as the database. */
import { Array, Clock, DateTime, Duration, Effect, Equal, Order } from "effect"
import type { Deletions, Delivery } from "./Delivery.ts"
import type { Scheduler } from "./Scheduler.ts"
import {
  attemptsBesideOthers,
  type Claim,
  maximumAttempts,
  type Outcome,
  type Receipt,
  RunOutcome,
  ScheduleOutcome,
  type TaskFailed
} from "./Task.ts"

interface MemoryTask {
  readonly delivery: Delivery
  readonly receipt: Receipt
  state: "scheduled" | "running" | "completed" | "dead"
  attempts: number
  token: string | undefined
  /** Milliseconds since 1970; undefined when no worker is wanted any more. */
  dueAt: number | undefined
}

const nothing: Outcome = {
  invoices: { deleted: 0, not_found: 0, clinic_mismatch: 0, client_mismatch: 0 },
  invoice_lines: { deleted: 0, not_found: 0, invoice_mismatch: 0, clinic_mismatch: 0 },
  lines_of_invoices: 0
}

const byDue = Order.mapInput(Order.Number, (task: MemoryTask) => task.dueAt ?? Number.POSITIVE_INFINITY)

const mustBeAlone = (task: MemoryTask) => task.attempts >= attemptsBesideOthers

const keyOf = (organization: string, taskId: string) => JSON.stringify([organization, taskId])

/** A scheduler over tasks in memory. */
export const make = (
  delay: Duration.Duration,
  perform: (deletions: Deletions, claim: Claim) => Effect.Effect<Outcome, TaskFailed> = () => Effect.succeed(nothing)
) =>
  Effect.sync((): Scheduler["Service"] => {
    const tasks = new Map<string, MemoryTask>()
    let claims = 0
    const held = ({ organization, taskId, token }: Claim) => {
      const task = tasks.get(keyOf(organization, taskId))
      return task?.token === token && task.state === "running" ? task : undefined
    }
    const openTasks = () => [...tasks.values()].filter((task) => task.dueAt !== undefined)

    const runTogether = Effect.fnUntraced(function* (all: ReadonlyArray<Claim>) {
      const outcomes = yield* Effect.forEach(all, (claim): Effect.Effect<RunOutcome, TaskFailed> => {
        const task = held(claim)
        return task === undefined
          ? Effect.succeed(RunOutcome.Superseded())
          : Effect.map(perform(task.delivery.deletions, claim), (outcome) => RunOutcome.Completed({ outcome }))
      })
      return Array.zipWith(all, outcomes, (claim, outcome) => {
        const task = held(claim)
        if (task === undefined) return RunOutcome.Superseded()
        task.state = "completed"
        task.token = undefined
        task.dueAt = undefined
        return outcome
      })
    })

    return {
      schedule: (delivery) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          const key = keyOf(delivery.organization, delivery.taskId)
          const known = tasks.get(key)
          if (known !== undefined) {
            return Equal.equals([...known.delivery.fingerprint], [...delivery.fingerprint])
              ? ScheduleOutcome.Duplicate({ receipt: known.receipt })
              : ScheduleOutcome.KeyReused()
          }
          const dueAt = now + Duration.toMillis(delay)
          const receipt: Receipt = {
            taskId: delivery.taskId,
            receivedAt: DateTime.makeUnsafe(now),
            scheduledFor: DateTime.makeUnsafe(dueAt),
            invoicesCount: delivery.invoicesCount,
            invoiceLinesCount: delivery.invoiceLinesCount
          }
          tasks.set(key, { delivery, receipt, state: "scheduled", attempts: 0, token: undefined, dueAt })
          return ScheduleOutcome.Scheduled({ receipt })
        }),
      claim: (limits, lease) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          const open = Array.sort(
            openTasks().filter((task) => (task.dueAt ?? now) <= now),
            byDue
          )
          const due = open.filter((task) => task.state === "scheduled")
          const expired = open.filter((task) => task.state === "running")
          const claimed = [
            ...due.slice(0, limits.due),
            ...expired.filter((task) => !mustBeAlone(task)).slice(0, limits.expired),
            ...expired.filter(mustBeAlone).slice(0, limits.alone)
          ]
          return Array.sort(claimed, byDue).flatMap((task): ReadonlyArray<Claim> => {
            if (task.attempts >= maximumAttempts) {
              task.state = "dead"
              task.dueAt = undefined
              return []
            }
            task.state = "running"
            task.attempts += 1
            task.token = `claim_${++claims}`
            task.dueAt = now + Duration.toMillis(lease)
            const { organization, taskId } = task.delivery
            return [{ organization, taskId, token: task.token, attempt: task.attempts }]
          })
        }),
      renew: (renewed, lease) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          for (const claim of renewed) {
            const task = held(claim)
            if (task !== undefined) task.dueAt = now + Duration.toMillis(lease)
          }
        }),
      run: (claim) => Effect.map(runTogether([claim]), ([outcome = RunOutcome.Superseded()]) => outcome),
      runTogether,
      fail: (claim, _reason, retryAfter) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          const task = held(claim)
          if (task === undefined) return
          const isDead = task.attempts >= maximumAttempts
          task.state = isDead ? "dead" : "scheduled"
          task.token = undefined
          task.dueAt = isDead ? undefined : now + Duration.toMillis(retryAfter)
        }),
      giveBack: (claim) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          const task = tasks.get(keyOf(claim.organization, claim.taskId))
          if (task === undefined || task.state === "completed") return
          const isOver = task.token === claim.token
          const counted = isOver
            ? task.attempts === claim.attempt
            : task.state !== "dead" && task.attempts > claim.attempt
          if (!counted) return
          task.attempts -= 1
          if (!isOver) return
          task.state = "scheduled"
          task.token = undefined
          task.dueAt = now
        }),
      untilDue: Effect.map(Clock.currentTimeMillis, (now) => {
        const [first] = Array.sort(openTasks(), byDue)
        return first?.dueAt === undefined ? undefined : Duration.millis(Math.max(0, first.dueAt - now))
      })
    }
  })
