/** The traces of the worker: one of each run of tasks, and one of each round that has tasks. */
import { type Context, Effect, Exit } from "effect"
import * as Tracing from "../observability/Tracing.ts"
import type { Claim } from "./Task.ts"

/** Runs tasks in a trace of its own, which is linked to those of their deliveries. */
export const ofRun = (claims: ReadonlyArray<Claim>) => {
  const [first] = claims
  return Tracing.root({
    name: "process deletion_tasks",
    kind: "consumer",
    links: claims.flatMap(({ traceParent }) => Tracing.parseTraceParent(traceParent) ?? []),
    attributes: {
      "practice_data.tasks": claims.length,
      ...(first === undefined || claims.length > 1
        ? {}
        : {
            "practice_data.task_id": first.taskId,
            "practice_data.organization": first.organization,
            "practice_data.attempt": first.attempt
          })
    }
  })
}

/** What follows a claim of tasks, in a trace that begins with the claim. A claim that found nothing is in no trace. */
export const ofRound =
  (startTime: bigint, claimed: number) =>
  <A, E, R>(working: Effect.Effect<A, E, R>) => {
    if (claimed === 0) return working
    const attributes = { "practice_data.tasks": claimed }
    return Effect.contextWith((context: Context.Context<R>) => {
      Tracing.child(context, "Scheduler.claim", { startTime })?.end(Tracing.now(context), Exit.void)
      return working
    }).pipe(Tracing.root({ name: "Worker.round", kind: "internal", startTime, attributes }))
  }
