/** A scheduler as a worker sees it through calls that fail, hang, or end its process. */
import { Effect } from "effect"
import type { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { type Claim, SchedulerUnavailable, type TaskFailed } from "../../../src/deletions/Task.ts"

/** What a worker calls. */
export type Call = "claim" | "renew" | "run" | "fail" | "release" | "untilDue"

/** What happens around the calls of a worker, and in the tasks that it runs. */
export interface Faults {
  readonly around: <A, E>(call: Call, effect: Effect.Effect<A, E>) => Effect.Effect<A, E | SchedulerUnavailable>
  readonly task?: (claim: Claim) => Effect.Effect<void, TaskFailed>
}

/** A scheduler with faults. */
export const faulty = (
  scheduler: Scheduler["Service"],
  { around, task = () => Effect.void }: Faults
): Scheduler["Service"] => ({
  schedule: scheduler.schedule,
  claim: (limits, lease) => around("claim", scheduler.claim(limits, lease)),
  runsApart: scheduler.runsApart,
  renew: (claims, lease) => around("renew", scheduler.renew(claims, lease)),
  run: (claims) =>
    around("run", Effect.andThen(Effect.forEach(claims, task, { discard: true }), scheduler.run(claims))),
  fail: (claim, reason, retryAfter) => around("fail", scheduler.fail(claim, reason, retryAfter)),
  empty: scheduler.empty,
  release: (claim) => around("release", scheduler.release(claim)),
  untilDue: around("untilDue", scheduler.untilDue)
})

/** The store does not answer. */
export const unavailable = Effect.fail(new SchedulerUnavailable({ message: "The store is down" }))
