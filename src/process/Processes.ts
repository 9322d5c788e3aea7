/**
 * Several processes behind one port, so that the cores of a machine share the work: this process starts children, and
 * replaces each that ends. Every child listens on the port itself, and the kernel shares the connections among them. The
 * connections of a child end with it, and no new one is handed to it.
 */
import { type ChildProcess, fork } from "node:child_process"
import { createServer } from "node:net"
import { extname, join } from "node:path"
import { Deferred, Duration, Effect, Exit, Schema, Scope } from "effect"
import { ServeError } from "effect/http/HttpServerError"
import { Children, hangs, type Place, probe } from "./Children.ts"
import * as Memory from "./Memory.ts"
import { grace } from "../http/Listener.ts"

const [, , role, sharedPort] = process.argv

// Beside this module, compiled or not.
const main = join(import.meta.dirname, `../main${extname(import.meta.filename)}`)

/** Whether this process was started by another one, to share its port. */
export const isChild = role === "child" && process.connected

/** How a child listens. */
export const childListener = { port: Number(sharedPort), reusePort: true } as const

/** A child ended before it listened. It has printed why. */
export class ChildEnded extends Schema.TaggedError<ChildEnded>()("ChildEnded", {
  code: Schema.NullOr(Schema.Int)
}) {}

/** What a child tells its parent. */
const Announcement = Schema.Struct({ address: Schema.String })
const isAnnouncement = Schema.is(Announcement)

/** In a child: tells the parent where it listens, and ends with the parent. */
export const announce = (address: string) =>
  Effect.andThen(
    Effect.sync(() => {
      // Without a parent, nothing would replace or stop this process, and it would keep the port.
      process.once("disconnect", () => process.exit(1))
      process.send?.({ address })
    }),
    Effect.logDebug(`A process listens on ${address}`)
  )

/** How to start children. */
export interface Options {
  readonly host: string
  readonly port: number
  /** How long a child still accepts requests when it is told to stop. */
  readonly drain: Duration.Duration
}

/** With the arguments of Node for each child. */
interface Supervised extends Options {
  readonly execArgv: Array<string>
}

// What a child needs to end after the drain and the grace period, its last exports among it.
const slack = Duration.seconds(4)

const stop = (child: ChildProcess, ended: Effect.Effect<unknown>, drain: Duration.Duration) =>
  Effect.sync(() => child.kill("SIGTERM")).pipe(
    Effect.andThen(ended),
    Effect.timeoutOrElse({
      duration: Duration.sum(drain, Duration.sum(grace, slack)),
      orElse: () => Effect.sync(() => child.kill("SIGKILL"))
    })
  )

const start = Effect.fnUntraced(function* (
  place: Place,
  wantedPort: number,
  { drain, execArgv }: Pick<Supervised, "drain" | "execArgv">
) {
  const listening = yield* Deferred.make<string, ChildEnded>()
  const ended = yield* Deferred.make<string>()
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const started = fork(main, ["child", String(wantedPort)], { execArgv })
      place.enter(started)
      // Figures may come before it.
      started.on("message", (message) => {
        if (isAnnouncement(message)) Deferred.doneUnsafe(listening, Effect.succeed(message.address))
      })
      started.once("exit", (code, signal) => {
        Deferred.doneUnsafe(listening, Effect.fail(new ChildEnded({ code })))
        Deferred.doneUnsafe(ended, Effect.succeed(signal ?? `code ${code}`))
      })
      return started
    }),
    (started) => stop(started, Deferred.await(ended), drain)
  )
  const address = yield* Deferred.await(listening)
  const killed = Effect.gen(function* () {
    yield* hangs(place.ask(probe))
    yield* Effect.logWarning(`Process ${child.pid} did not answer for 3 seconds, and is killed`)
    child.kill("SIGKILL")
    return yield* Deferred.await(ended)
  })
  return { address, ended: Effect.raceFirst(Deferred.await(ended), killed) }
})

const portOf = (address: string) => Number(new URL(address).port)

const shortestPause = Duration.millis(100)
const longestPause = Duration.seconds(30)

/** A child that has run for this long has not failed to start. */
const stable = Duration.minutes(1)

/**
 * Runs a child in its place, and another one whenever it ends, with exponential backoff. Returns when the very first child of all ends
 * before it listened.
 */
const keep = Effect.fnUntraced(function* (
  place: Place,
  options: Supervised,
  wantedPort: number,
  listening: Deferred.Deferred<string, ChildEnded>
) {
  let port = wantedPort
  let pause = shortestPause
  while (true) {
    const [lived, reason] = yield* Effect.timed(
      Effect.gen(function* () {
        const { address, ended } = yield* start(place, port, options)
        port = portOf(address)
        yield* Deferred.succeed(listening, address)
        return yield* ended
      }).pipe(
        Effect.catchTag("ChildEnded", (error) =>
          Effect.map(Deferred.fail(listening, error), (isFirst) =>
            isFirst ? undefined : `code ${error.code} before it listened`
          )
        ),
        Effect.scoped
      )
    )
    if (reason === undefined) return
    if (Duration.isGreaterThan(lived, stable)) pause = shortestPause
    yield* Effect.logWarning(`A process ended with ${reason}. Another one starts in ${Duration.format(pause)}`)
    yield* Effect.sleep(pause)
    pause = Duration.min(Duration.times(pause, 2), longestPause)
  }
})

/** Fails if another program listens on the port: the kernel would share it with any program of the same user. */
const assertIsFree = ({ host, port: wanted }: Options) =>
  Effect.callback<void, ServeError>((resume) => {
    const server = createServer()
      .once("error", (cause) => resume(Effect.fail(new ServeError({ cause }))))
      .listen(wanted, host, () => server.close(() => resume(Effect.void)))
  })

/**
 * Starts the children, each in its place, and keeps them running until the scope closes, which stops all of them at once.
 * Fails if the first one does not come to listen.
 */
export const supervise = Effect.fnUntraced(function* (options: Options) {
  const { places } = yield* Children
  if (options.port !== 0) yield* assertIsFree(options)
  const together = yield* Effect.acquireRelease(Scope.make("parallel"), (scope) => Scope.close(scope, Exit.void))
  const listening = yield* Deferred.make<string, ChildEnded>()
  const supervised = { ...options, execArgv: Memory.argumentsOfEach(places.length) }
  const keepIn = (place: Place, port: number) => Effect.forkIn(keep(place, supervised, port, listening), together)
  const [first, ...others] = places
  if (first === undefined) return
  yield* keepIn(first, options.port)
  const address = yield* Deferred.await(listening)
  yield* Effect.log(`Listening on ${address}`)
  yield* Effect.forEach(others, (place) => keepIn(place, portOf(address)), { discard: true })
})
