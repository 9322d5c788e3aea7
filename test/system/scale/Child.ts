/**
 * Measuring in a process of its own: a plan goes in, a report comes out. What it waits for is then the service, and not
 * the event loop of whoever makes the load.
 */
import { fork } from "node:child_process"
import { setPriority } from "node:os"
import { NodeRuntime } from "@effect/platform-node"
import { Data, Deferred, Effect, Schema } from "effect"

/** The process ended without a report. */
export class NoReport extends Data.TaggedError("NoReport")<{ readonly code: number | null }> {}

/** How the system ranks a process among those that want the processor: the one that measures goes first. */
export type Rank = "first" | "normal" | "last"

const niceness = { first: -10, normal: 0, last: 10 } as const

const rank = (pid: number, which: Rank) => {
  try {
    setPriority(pid, niceness[which])
  } catch {
    // Going first takes a privilege, and is no more than a help.
  }
}

/** Starts a module that calls {@link main}, and waits until it has begun. It is gone when the scope closes. */
export const start = Effect.fnUntraced(function* <P, R>(
  module: string,
  schemas: { readonly plan: Schema.ConstraintCodec<P, unknown>; readonly report: Schema.ConstraintCodec<R, unknown> },
  plan: P,
  order: Rank = "normal"
) {
  const begun = yield* Deferred.make<void, NoReport>()
  const reported = yield* Deferred.make<unknown, NoReport>()
  const text = yield* Effect.orDie(Schema.encodeEffect(Schema.fromJsonString(schemas.plan))(plan))
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const forked = fork(module, [], { stdio: ["ignore", "inherit", "inherit", "ipc"] })
      rank(forked.pid ?? 0, order)
      forked.on("message", (message) => {
        if (message === "begun") Deferred.doneUnsafe(begun, Effect.void)
        else Deferred.doneUnsafe(reported, Effect.succeed(message))
      })
      forked.once("exit", (code) => {
        Deferred.doneUnsafe(begun, Effect.fail(new NoReport({ code })))
        Deferred.doneUnsafe(reported, Effect.fail(new NoReport({ code })))
      })
      forked.send(text)
      return forked
    }),
    (forked) => Effect.sync(() => forked.kill("SIGKILL"))
  )
  yield* Deferred.await(begun)
  const report = Effect.flatMap(Deferred.await(reported), (message) =>
    Effect.orDie(Schema.decodeUnknownEffect(Schema.fromJsonString(schemas.report))(message))
  )
  return {
    pid: child.pid ?? 0,
    /** The report, when the plan is done. */
    report,
    /** The report of what was done so far, and no more is done. */
    stop: Effect.andThen(
      Effect.sync(() => {
        if (child.connected) child.send("stop")
      }),
      report
    )
  }
})

/** The other side: takes the plan, does the work, which ends early when it is told to stop, and reports. */
export const main = <P, R>(
  schemas: { readonly plan: Schema.ConstraintCodec<P, unknown>; readonly report: Schema.ConstraintCodec<R, unknown> },
  work: (plan: P, stopped: Deferred.Deferred<void>) => Effect.Effect<R>
) =>
  Effect.gen(function* () {
    const stopped = yield* Deferred.make<void>()
    const text = yield* Effect.callback<unknown>((resume) => {
      process.once("message", (message) => resume(Effect.succeed(message)))
    })
    process.on("message", () => Deferred.doneUnsafe(stopped, Effect.void))
    process.once("disconnect", () => process.exit())
    const plan = yield* Effect.orDie(Schema.decodeUnknownEffect(Schema.fromJsonString(schemas.plan))(text))
    process.send?.("begun")
    const report = yield* work(plan, stopped)
    const message = yield* Effect.orDie(Schema.encodeEffect(Schema.fromJsonString(schemas.report))(report))
    yield* Effect.callback<void>((resume) => void process.send?.(message, () => resume(Effect.void)))
    process.exit()
  }).pipe(NodeRuntime.runMain)
