/**
 * Several processes behind one port, so that the cores of a machine share the work. The parent starts children, and
 * replaces each that ends. Every child listens on the port itself, and the kernel distributes the connections. The
 * connections of a child end with it, and it gets no new one.
 */
import { type ChildProcess, fork } from "node:child_process"
import { connect, createServer } from "node:net"
import { Deferred, Duration, Effect, Exit, Schema, Scope } from "effect"
import { ServeError } from "effect/http/HttpServerError"
import { ask, Children, hangs, type Place, probe } from "./Children.ts"
import { argumentsOfEach } from "./Memory.ts"
import { moduleBeside } from "./Package.ts"

const [, , role, sharedPort] = process.argv

const main = moduleBeside(import.meta.url, "../main")

/** True if another process started this one, to share its port. */
export const isChild = role === "child" && process.connected

export const childListener = { port: Number(sharedPort), reusePort: true } as const

/** A child ended before it listened. It has printed why. */
export class ChildEnded extends Schema.TaggedError<ChildEnded>()("ChildEnded", {
  code: Schema.NullOr(Schema.Int)
}) {}

const isAnnouncement = Schema.is(Schema.Struct({ address: Schema.String }))

/** Tells the parent, in a child, the address that it listens on, and ends with the parent. */
export const announce = (address: string) =>
  Effect.andThen(
    Effect.sync(() => {
      // Without a parent, nothing would replace or stop this process, and it would keep the port.
      process.once("disconnect", () => process.exit(1))
      process.send?.({ address })
    }),
    Effect.logDebug(`A process listens on ${address}`)
  )

// A child needs a while more to end, for its last exports among other things.
const slack = Duration.seconds(4)

const stop = (child: ChildProcess, ended: Effect.Effect<unknown>, timeout: Duration.Duration) =>
  Effect.sync(() => child.kill("SIGTERM")).pipe(
    Effect.andThen(ended),
    Effect.timeoutOrElse({
      duration: Duration.sum(timeout, slack),
      orElse: () => Effect.sync(() => child.kill("SIGKILL"))
    })
  )

/** Starts a child and waits until it listens. `ended` returns why it ended; a child that hangs is killed. */
const start = Effect.fnUntraced(function* (place: Place, port: number, count: number, stopTimeout: Duration.Duration) {
  const listening = yield* Deferred.make<string, ChildEnded>()
  const ended = yield* Deferred.make<string>()
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const started = fork(main, ["child", String(port)], { execArgv: argumentsOfEach(count) })
      place.child = started
      // One for each question that waits for its answer. The operators' listener has a limit.
      started.setMaxListeners(0)
      started.on("message", (message) => {
        if (isAnnouncement(message)) Deferred.doneUnsafe(listening, Effect.succeed(message.address))
      })
      started.once("exit", (code, signal) => {
        place.child = undefined
        Deferred.doneUnsafe(listening, Effect.fail(new ChildEnded({ code })))
        Deferred.doneUnsafe(ended, Effect.succeed(signal ?? `code ${code}`))
      })
      return started
    }),
    (started) => stop(started, Deferred.await(ended), stopTimeout)
  )
  const address = yield* Deferred.await(listening)
  const killed = Effect.gen(function* () {
    yield* hangs(ask(place, probe))
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

/** The pause before another child starts, by the one before it: it doubles, and begins anew after a stable child. */
export const pauseAfter = (before: Duration.Duration, lived: Duration.Duration) =>
  Duration.isGreaterThan(lived, stable)
    ? shortestPause
    : Duration.clamp(Duration.times(before, 2), { minimum: shortestPause, maximum: longestPause })

interface Address {
  readonly host: string
  readonly port: number
}

const isRefused = (address: Address) =>
  Effect.callback<boolean>((resume) => {
    const socket = connect(address)
      .once("connect", () => {
        socket.destroy()
        resume(Effect.succeed(false))
      })
      .once("error", (error: NodeJS.ErrnoException) => resume(Effect.succeed(error.code === "ECONNREFUSED")))
    return Effect.sync(() => socket.destroy())
  }).pipe(Effect.timeoutOrElse({ duration: "1 second", orElse: () => Effect.succeed(false) }))

/**
 * Fails if a port is in use, or its host is no address of this machine. It listens only where no client can connect:
 * the end of a listener resets the connections that it has not accepted.
 */
export const assertIsFree = Effect.fnUntraced(function* ({ host, port }: Address) {
  const isFree = port === 0 || (yield* isRefused({ host, port }))
  yield* Effect.callback<void, ServeError>((resume) => {
    const server = createServer()
      .once("error", (cause) => resume(Effect.fail(new ServeError({ cause }))))
      // Any port, to check the host.
      .listen({ host, port: isFree ? 0 : port }, () => server.close(() => resume(Effect.void)))
  })
})

/**
 * Starts the children, and keeps them running until the scope closes, which stops all of them at once. Fails if the
 * first one does not come to listen. The longest stop of a child is its drain and its grace period.
 */
export const supervise = Effect.fnUntraced(function* (wanted: number, stopTimeout: Duration.Duration) {
  const { places } = yield* Children
  const together = yield* Effect.acquireRelease(Scope.make("parallel"), (scope) => Scope.close(scope, Exit.void))
  const listening = yield* Deferred.make<string, ChildEnded>()
  /** Runs a child, and another one whenever it ends. Returns if the very first child ends before it listens. */
  const keep = Effect.fnUntraced(function* (place: Place, wantedPort: number) {
    let port = wantedPort
    let pause = Duration.zero
    while (true) {
      const [lived, reason] = yield* Effect.gen(function* () {
        const { address, ended } = yield* start(place, port, places.length, stopTimeout)
        port = portOf(address)
        yield* Deferred.succeed(listening, address)
        return yield* ended
      }).pipe(
        Effect.catchTag("ChildEnded", (error) =>
          Effect.map(Deferred.fail(listening, error), (isFirst) =>
            isFirst ? undefined : `code ${error.code} before it listened`
          )
        ),
        Effect.scoped,
        Effect.timed
      )
      if (reason === undefined) return
      pause = pauseAfter(pause, lived)
      yield* Effect.logWarning(`A process ended with ${reason}. Another one starts in ${Duration.format(pause)}`)
      yield* Effect.sleep(pause)
      place.restarts += 1
    }
  })
  const [first, ...others] = places
  if (first === undefined) return
  yield* Effect.forkIn(keep(first, wanted), together)
  const address = yield* Deferred.await(listening)
  yield* Effect.log(`Listening on ${address}`)
  yield* Effect.forEach(others, (place) => Effect.forkIn(keep(place, portOf(address)), together), { discard: true })
})
