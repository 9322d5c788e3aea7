/**
 * The fake of the scheduler: tasks in memory, by the same rules as the database, but without turns, without a bound of a
 * backlog, and with their payloads for good.
 */
import { Array, DateTime, Duration, Effect, Equal, Layer, Order, Struct } from "effect"
import { noItems, type Outcome } from "../api/DeletionTasks.ts"
import * as Time from "../process/Time.ts"
import { type Deletions, type Delivery, type Receipt, receiptOf } from "./Delivery.ts"
import * as Retries from "./Retries.ts"
import { Scheduler, type TaskFailed } from "./Scheduler.ts"
import * as Task from "./WorkerTasks.ts"

/** The effect of a task. */
export type RunTask = (deletions: Deletions, claim: Task.Claim) => Effect.Effect<Outcome, TaskFailed>

interface MemoryTask {
  readonly delivery: Delivery
  readonly receipt: Receipt
  attempts: number
  /** The token of the claim that holds the task; empty without one. */
  token: string
  /** Milliseconds since 1970; infinite when the task is completed or dead. */
  dueAt: number
}

const byDue = Order.mapInput(Order.Number, ({ dueAt }: MemoryTask) => dueAt)

const isIsolated = (task: MemoryTask) => task.attempts >= Retries.sharedAttempts

const isDead = (task: MemoryTask) => task.attempts >= Retries.maximumAttempts

/**
 * @param delay from receiving a delivery to running it
 * @param runTask by default, tasks delete nothing
 */
export const layer = (delay: Duration.Duration, runTask: RunTask = () => Effect.succeed(noItems)) =>
  Layer.sync(Scheduler, () => {
    const known = new Map<string, MemoryTask>()
    let claims = 0

    const held = ({ taskId, token }: Task.Claim) => {
      const task = known.get(taskId)
      return task?.token === token && task.dueAt < Infinity ? task : undefined
    }
    const changeHeld = (claim: Task.Claim, fields: (task: MemoryTask, now: number) => Partial<MemoryTask>) =>
      Effect.map(Time.wall, (now) => {
        const task = held(claim)
        if (task !== undefined) Object.assign(task, fields(task, now))
      })

    const take = (task: MemoryTask, leaseEnd: number): Task.Taken => {
      const { delivery, receipt, token } = task
      if (isDead(task)) task.dueAt = Infinity
      else Object.assign(task, { attempts: task.attempts + 1, token: `claim_${++claims}`, dueAt: leaseEnd })
      return {
        ...Struct.pick(delivery, ["organization", "taskId", "idempotencyKey"]),
        scheduledFor: receipt.scheduled_for,
        token: task.token,
        attempt: task.attempts,
        isTakeover: token !== "",
        isDead: task.dueAt === Infinity,
        reason: null
      }
    }

    return Scheduler.of({
      schedule: (delivery) =>
        Effect.gen(function* () {
          const receipt = yield* receiptOf(delivery, delay)
          const first = known.get(delivery.taskId)
          if (first !== undefined) {
            return Equal.equals([...first.delivery.fingerprint], [...delivery.fingerprint])
              ? { status: "duplicate", receipt: first.receipt }
              : { status: "key_reused" }
          }
          const dueAt = DateTime.toEpochMillis(receipt.scheduled_for)
          known.set(delivery.taskId, { delivery, receipt, attempts: 0, token: "", dueAt })
          return { status: "scheduled", receipt }
        }),
      claim: ({ due = 0, except, expired = 0, isolated = 0 }, lease) =>
        Effect.flatMap(Time.wall, (now) => {
          const open = Array.sort(known.values(), byDue).filter(({ dueAt }) => dueAt <= now)
          const running = open.filter(({ token }) => token !== "")
          const scheduled = open.filter(
            ({ delivery, token }) => token === "" && except?.has(delivery.organization) !== true
          )
          const claimed = [
            ...scheduled.slice(0, due),
            ...running.filter((task) => !isIsolated(task)).slice(0, expired),
            ...running.filter(isIsolated).slice(0, isolated)
          ]
          return Task.claimsOf(Array.sort(claimed, byDue).map((task) => take(task, now + Duration.toMillis(lease))))
        }),
      isPerOrganization: () => false,
      renew: (all, lease) => {
        const renewed = (_: MemoryTask, now: number) => ({ dueAt: now + Duration.toMillis(lease) })
        return Effect.forEach(all, (claim) => changeHeld(claim, renewed), { discard: true })
      },
      run: Effect.fnUntraced(function* (all) {
        const outcomes = yield* Effect.forEach(all, (claim) => {
          const task = held(claim)
          return task === undefined ? Effect.undefined : runTask(task.delivery.deletions, claim)
        })
        return Array.zipWith(all, outcomes, (claim, outcome) => {
          const task = held(claim)
          if (task === undefined || outcome === undefined) return undefined
          Object.assign(task, { token: "", dueAt: Infinity })
          return outcome
        })
      }),
      fail: (claim, _reason, retryAfter) =>
        changeHeld(claim, (task, now) => ({
          token: "",
          dueAt: isDead(task) ? Infinity : now + Duration.toMillis(retryAfter)
        })),
      release: (claim, after = Duration.zero) =>
        Effect.map(Time.wall, (now) => {
          const task = known.get(claim.taskId)
          if (task?.token === claim.token) {
            Object.assign(task, {
              attempts: task.attempts - 1,
              token: "",
              dueAt: now + Duration.toMillis(after)
            })
          } else if (task !== undefined && task.dueAt < Infinity && task.attempts > claim.attempt) {
            task.attempts -= 1
          }
          return true
        }),
      empty: () => Effect.succeed(0),
      untilDue: Effect.map(Time.wall, (now) => {
        const [{ dueAt } = { dueAt: Infinity }] = Array.sort(known.values(), byDue)
        return dueAt === Infinity ? undefined : Duration.millis(Math.max(0, dueAt - now))
      }),
      hasIsolated: Effect.map(Time.wall, (now) =>
        [...known.values()].some((task) => task.token !== "" && task.dueAt <= now && isIsolated(task))
      )
    })
  })
