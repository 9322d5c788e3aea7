/**
 * Several processes behind one port, so that a machine's cores share the work: this process starts them and starts
 * another in the place of one that ends. Each of them listens on the port itself, and the kernel shares the connections
 * among those that do. What a process has accepted ends with it at once, as a client can see, and nothing is handed to it
 * any more.
 */
import { type ChildProcess, fork } from "node:child_process"
import { createServer } from "node:net"
import { join } from "node:path"
import { Deferred, Duration, Effect, Exit, Schema, Scope } from "effect"
import { ServeError } from "effect/http/HttpServerError"
import { grace } from "../http/Listener.ts"

const [, , role, sharedPort] = process.argv

/** Whether this process was started by another one, to share its port. */
export const isWorker = role === "worker" && process.connected

/** Where a worker listens. */
export const shared = { port: Number(sharedPort), reusePort: true } as const

/** A worker ended before it listened. What it says about it, it has said. */
export class WorkerEnded extends Schema.TaggedError<WorkerEnded>()("WorkerEnded", {
  code: Schema.NullOr(Schema.Int)
}) {}

/** What a worker tells the process that started it. */
const Announcement = Schema.Struct({ address: Schema.String })
const isAnnouncement = Schema.is(Announcement)

/** In a worker: tells the process that started it where it listens, and ends when that process does. */
export const announce = (address: string) =>
  Effect.andThen(
    Effect.sync(() => {
      // Nobody is there to replace or to stop it, and it would keep the port.
      process.once("disconnect", () => process.exit(1))
      process.send?.({ address })
    }),
    Effect.logDebug(`A worker listens on ${address}`)
  )

/** Which processes to start. */
export interface Options {
  readonly workers: number
  readonly host: string
  readonly port: number
  /** How long a stopping worker goes on answering. */
  readonly drain: Duration.Duration
}

// What a worker needs for its own end after the drain and the grace.
const slack = Duration.seconds(2)

const stop = (child: ChildProcess, ended: Effect.Effect<unknown>, drain: Duration.Duration) =>
  Effect.sync(() => child.kill("SIGTERM")).pipe(
    Effect.andThen(ended),
    Effect.timeoutOrElse({
      duration: Duration.sum(drain, Duration.sum(grace, slack)),
      orElse: () => Effect.sync(() => child.kill("SIGKILL"))
    })
  )

const start = Effect.fnUntraced(function* (wantedPort: number, drain: Duration.Duration) {
  const listening = yield* Deferred.make<string, WorkerEnded>()
  const ended = yield* Deferred.make<string>()
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      const child = fork(join(import.meta.dirname, "../main.ts"), ["worker", String(wantedPort)])
      child.once("message", (message) => {
        if (isAnnouncement(message)) Deferred.doneUnsafe(listening, Effect.succeed(message.address))
      })
      child.once("exit", (code, signal) => {
        Deferred.doneUnsafe(listening, Effect.fail(new WorkerEnded({ code })))
        Deferred.doneUnsafe(ended, Effect.succeed(signal ?? `code ${code}`))
      })
      return child
    }),
    (child) => stop(child, Deferred.await(ended), drain)
  )
  return { address: yield* Deferred.await(listening), ended: Deferred.await(ended) }
})

const portOf = (address: string) => Number(new URL(address).port)

const shortestPause = Duration.millis(100)
const longestPause = Duration.seconds(30)

/** Who has run for so long has not failed to start. */
const settled = Duration.minutes(1)

/**
 * A worker, and another one whenever one ends: soon, and later each time that one ends without having run for a while.
 * Ends itself when the very first one never listened.
 */
const keep = Effect.fnUntraced(function* (
  { drain }: Options,
  wantedPort: number,
  listening: Deferred.Deferred<string, WorkerEnded>
) {
  let port = wantedPort
  let pause = shortestPause
  while (true) {
    const [lived, reason] = yield* Effect.timed(
      Effect.gen(function* () {
        const { address, ended } = yield* start(port, drain)
        port = portOf(address)
        yield* Deferred.succeed(listening, address)
        return yield* ended
      }).pipe(
        Effect.catchTag("WorkerEnded", (error) =>
          Effect.map(Deferred.fail(listening, error), (isFirst) =>
            isFirst ? undefined : `code ${error.code} before it listened`
          )
        ),
        Effect.scoped
      )
    )
    if (reason === undefined) return
    if (Duration.isGreaterThan(lived, settled)) pause = shortestPause
    yield* Effect.logWarning(`A worker ended with ${reason}, and another one is started in ${Duration.format(pause)}`)
    yield* Effect.sleep(pause)
    pause = Duration.min(Duration.times(pause, 2), longestPause)
  }
})

/** Fails when someone else listens on the port: the kernel would share it with a stranger of the same user, too. */
const assertIsFree = ({ host, port: wanted }: Options) =>
  Effect.callback<void, ServeError>((resume) => {
    const probe = createServer()
      .once("error", (cause) => resume(Effect.fail(new ServeError({ cause }))))
      .listen(wanted, host, () => probe.close(() => resume(Effect.void)))
  })

/**
 * Starts so many workers and keeps them running until the scope closes, which stops all of them at once. When the first
 * does not come to listen, neither would another.
 */
export const supervise = Effect.fnUntraced(function* (options: Options) {
  if (options.port !== 0) yield* assertIsFree(options)
  const together = yield* Effect.acquireRelease(Scope.make("parallel"), (scope) => Scope.close(scope, Exit.void))
  const listening = yield* Deferred.make<string, WorkerEnded>()
  yield* Effect.forkIn(keep(options, options.port, listening), together)
  const address = yield* Deferred.await(listening)
  yield* Effect.log(`Listening on ${address}`)
  for (let index = 1; index < options.workers; index++) {
    yield* Effect.forkIn(keep(options, portOf(address), listening), together)
  }
})
