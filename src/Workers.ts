/**
 * Several processes behind one port, so that a machine's cores share the work: this process starts them, hands them the
 * connections, and starts another in the place of one that ends.
 */
import cluster from "node:cluster"
import { Deferred, Duration, Effect, Schedule, Schema } from "effect"

/** Whether this process was started by another one, to share its port. */
export const { isWorker } = cluster

/** A worker ended before it listened. What it says about it, it has said. */
export class WorkerEnded extends Schema.TaggedError<WorkerEnded>()("WorkerEnded", {
  code: Schema.NullOr(Schema.Int)
}) {}

// Workers finish what is in flight, for 10 seconds at most.
const patience = Duration.seconds(12)

const start = Effect.gen(function* () {
  const listening = yield* Deferred.make<string, WorkerEnded>()
  const ended = yield* Deferred.make<void>()
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      const worker = cluster.fork()
      worker.once("listening", ({ address, port }) => {
        const host = address.includes(":") ? `[${address}]` : address
        Deferred.doneUnsafe(listening, Effect.succeed(`http://${host}:${port}`))
      })
      worker.once("exit", (code) => {
        Deferred.doneUnsafe(listening, Effect.fail(new WorkerEnded({ code })))
        Deferred.doneUnsafe(ended, Effect.void)
      })
      return worker
    }),
    (worker) =>
      Effect.sync(() => worker.process.kill("SIGTERM")).pipe(
        Effect.andThen(Deferred.await(ended)),
        Effect.timeoutOrElse({
          duration: patience,
          orElse: () => Effect.sync(() => void worker.process.kill("SIGKILL"))
        })
      )
  )
  return { address: yield* Deferred.await(listening), ended: Deferred.await(ended) }
})

const replace = start.pipe(
  Effect.flatMap(({ ended }) => ended),
  Effect.scoped,
  Effect.ignore,
  Effect.andThen(Effect.logWarning("A worker ended, and another one is started")),
  Effect.repeat(Schedule.spaced("1 second"))
)

/**
 * Starts so many workers and keeps them running until the scope closes, which stops them. When the first does not come to
 * listen, neither would another.
 */
export const supervise = Effect.fnUntraced(function* (count: number) {
  const first = yield* start
  yield* Effect.log(`Listening on ${first.address}`)
  yield* Effect.forkScoped(
    Effect.andThen(
      first.ended,
      Effect.andThen(Effect.logWarning("A worker ended, and another one is started"), replace)
    )
  )
  for (let index = 1; index < count; index++) yield* Effect.forkScoped(replace)
})
