/**
 * The fake of the scheduler: tasks in memory, by the same rules as the database, but without turns, without a bound of a
 * backlog, and with their payloads for good.
 */
import { randomUUID } from "node:crypto"
import { Array, DateTime, Duration, Effect, Equal, Layer, Order, Struct } from "effect"
import { noItems, type Outcome } from "../api/DeletionTasks.ts"
import * as Time from "../observability/Time.ts"
import { type Deletions, type Delivery, type Receipt, makeReceipt } from "./Delivery.ts"
import * as Retries from "./Retries.ts"
import { type Claim, Scheduler, type TaskFailed } from "./Scheduler.ts"

/** The effect of a task. */
export type RunTask = (deletions: Deletions, claim: Claim) => Effect.Effect<Outcome, TaskFailed>

interface MemoryTask {
  readonly delivery: Delivery
  readonly receipt: Receipt
  attempts: number
  /** The attempt that runs; empty without one. */
  token: string
  /** True while a worker has its row locked. */
  isLocked: boolean
  /** Milliseconds since 1970; infinite when the task is completed or dead. */
  dueAt: number
}

const byDue = Order.mapInput(Order.Number, ({ dueAt }: MemoryTask) => dueAt)

const isDead = (task: MemoryTask) => task.attempts >= Retries.maximumAttempts

/**
 * @param delay from receiving a delivery to running it
 * @param runTask by default, tasks delete nothing
 */
export const layer = (delay: Duration.Duration, runTask: RunTask = () => Effect.succeed(noItems)) =>
  Layer.sync(Scheduler, () => {
    const known = new Map<string, MemoryTask>()

    const held = ({ taskId, token }: Claim) => {
      const task = known.get(taskId)
      return task?.token === token ? task : undefined
    }

    const end = (claim: Claim, dueAt: (task: MemoryTask, now: number) => number) =>
      Effect.map(Time.wall, (now) => {
        const task = held(claim)
        if (task !== undefined) Object.assign(task, { dueAt: dueAt(task, now), token: "" })
      })

    return Scheduler.of({
      schedule: (delivery) =>
        Effect.gen(function* () {
          const receipt = yield* makeReceipt(delivery, delay)
          const first = known.get(delivery.taskId)
          if (first !== undefined) {
            return Equal.equals([...first.delivery.fingerprint], [...delivery.fingerprint])
              ? { status: "duplicate", receipt: first.receipt }
              : { status: "key_reused" }
          }
          const dueAt = DateTime.toEpochMillis(receipt.scheduled_for)
          known.set(delivery.taskId, { delivery, receipt, attempts: 0, token: "", isLocked: false, dueAt })
          return { status: "scheduled", receipt }
        }),
      due: (limit) =>
        Effect.map(Time.wall, (now) =>
          Array.sort(known.values(), byDue)
            .filter(({ dueAt }) => dueAt <= now)
            .slice(0, limit)
            .map(({ delivery }) => Struct.pick(delivery, ["organization", "taskId"]))
        ),
      start: ({ taskId }) =>
        Effect.map(Time.wall, (now) => {
          const task = known.get(taskId)
          if (task === undefined || task.isLocked || task.dueAt > now) return undefined
          const isTakeover = task.token !== ""
          if (isDead(task)) Object.assign(task, { token: "", dueAt: Infinity })
          else Object.assign(task, { attempts: task.attempts + 1, token: randomUUID(), dueAt: now + 1000 })
          return {
            ...Struct.pick(task.delivery, ["organization", "taskId", "idempotencyKey"]),
            scheduledFor: task.receipt.scheduled_for,
            token: task.token,
            attempt: task.attempts,
            isTakeover,
            isDead: task.dueAt === Infinity,
            lastError: null
          }
        }),
      run: (claim) =>
        Effect.suspend(() => {
          const task = held(claim)
          if (task === undefined) return Effect.undefined
          task.isLocked = true
          return Effect.tap(runTask(task.delivery.deletions, claim), () => end(claim, () => Infinity)).pipe(
            Effect.ensuring(Effect.sync(() => Object.assign(task, { isLocked: false })))
          )
        }),
      fail: (claim, _reason, after) =>
        end(claim, (task, now) => (isDead(task) ? Infinity : now + Duration.toMillis(after))),
      postpone: (claim, after) =>
        Effect.map(Time.wall, (now) => {
          const task = known.get(claim.taskId)
          const isHeld = task?.token === claim.token
          if (task === undefined || task.dueAt === Infinity || !(isHeld || task.attempts > claim.attempt)) return
          task.attempts -= 1
          if (isHeld) Object.assign(task, { token: "", dueAt: now + Duration.toMillis(after) })
        })
    })
  })
