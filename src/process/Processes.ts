/**
 * Several processes behind one port, so that the cores of a machine share the work. The parent starts children, and
 * replaces each that ends. Every child listens on the port itself, and the kernel distributes the connections. The
 * connections of a child end with it, and it gets no new one. The processes share the memory of the machine. The parent
 * asks its children questions: whether they run, and for their figures.
 */
import { type ChildProcess, fork } from "node:child_process"
import { connect, createServer } from "node:net"
import { totalmem } from "node:os"
import { getHeapStatistics } from "node:v8"
import { Context, Deferred, Duration, Effect, Exit, Layer, Option, Schema, Scope } from "effect"
import { ServeError } from "effect/http/HttpServerError"
import * as Loop from "./Loop.ts"
import { moduleBeside } from "./Package.ts"
import { wrong } from "./Variable.ts"

const [, , role, sharedPort] = process.argv

/** True if another process started this one, to share its port. */
export const isChild = role === "child" && process.send !== undefined

/** Ends a child with its parent: without one, nothing would replace or stop it, and it would keep the port. */
export const endWithParent = () => {
  if (!isChild) return
  if (!process.connected) process.exit(1)
  process.once("disconnect", () => process.exit(1))
}

export const childListener = { port: Number(sharedPort), reusePort: true } as const

/** A child ended. One that fails before it listens has printed why. */
export class ChildEnded extends Schema.TaggedError<ChildEnded>()("ChildEnded", {
  message: Schema.String,
  hasPrinted: Schema.Boolean
}) {}

const isAnnouncement = Schema.is(Schema.Struct({ address: Schema.String }))

/** Tells the parent, in a child, the address that it listens on. */
export const announce = (address: string) =>
  Effect.andThen(
    // The parent may be gone by then.
    Effect.sync(() => process.send?.({ address }, () => {})),
    Effect.logDebug(`A process listens on ${address}`)
  )

const mebibyte = 1024 ** 2

/** Bytes that a process needs under load, with its share of the parent. */
const needed = 256 * mebibyte

/** The part of the memory that `npm start` gives to the heap. */
const heap = 0.4

/** The bytes of the machine, or of the container (cgroup 1 or 2) where it has fewer. */
export const availableMemory = () => Math.min(process.constrainedMemory() || Infinity, totalmem())

/** The bytes of this process. Of several, each has its share: its heap is as large a part of it. */
export const ownMemory = () => Math.min(availableMemory(), getHeapStatistics().heap_size_limit / heap)

/** Fails if the processes do not fit into so many bytes. */
export const assertFits = Effect.fnUntraced(function* (processes: number, memory: number) {
  if (processes * needed <= memory) return
  const [need, each, found] = [processes * needed, needed, memory].map((bytes) => Math.floor(bytes / mebibyte))
  const message = `${processes} processes need ${need} MiB, ${each} MiB each, and this machine or container has ${found} MiB. Set PROCESSES=${Math.max(1, Math.floor(memory / needed))}, or give it more memory`
  return yield* Effect.fail(wrong("PROCESSES", message))
})

/** The bytes of heap of each process: together they have the limit of one, or the usual part of the memory if larger. */
export const heapOfEach = (processes: number, one: number, memory: number): number =>
  Math.min(one, Math.max(one, heap * memory) / processes)

const percentage = "--max-old-space-size-percentage"

/** The arguments of Node for each process. The last one of a name counts. */
const argumentsOfEach = (processes: number): Array<string> => {
  const memory = availableMemory()
  const bytes = heapOfEach(processes, getHeapStatistics().heap_size_limit, memory)
  // It wins over a limit in MiB. Node 22 lacks it.
  const limit = process.allowedNodeEnvironmentFlags.has(percentage)
    ? `${percentage}=${((100 * bytes) / memory).toFixed(3)}`
    : `--max-old-space-size=${Math.floor(bytes / mebibyte)}`
  return [...process.execArgv, limit]
}

const isQuestion = Schema.is(Schema.Struct({ question: Schema.String }))
const isAnswer = Schema.is(Schema.Struct({ question: Schema.String, answer: Schema.Unknown }))

/** The question that a child answers as long as its event loop turns, also while it drains. */
const probe = "alive"

/** Answers the questions of the parent with plain JSON, in a child, until the scope closes. */
export const answering = Effect.fnUntraced(function* (others: Readonly<Record<string, Effect.Effect<unknown>>>) {
  const answers: typeof others = { ...others, [probe]: Effect.succeed(true) }
  const run = Effect.runForkWith(yield* Effect.context())
  const onMessage = (message: unknown) => {
    if (!isQuestion(message)) return
    const { question } = message
    const answer = answers[question]
    // The parent may be gone by then.
    if (answer !== undefined) run(Effect.map(answer, (value) => process.send?.({ question, answer: value }, () => {})))
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("message", onMessage)),
    () => Effect.sync(() => process.off("message", onMessage))
  )
})

/** The place of a child, and of each that replaces it. */
interface Place {
  child: ChildProcess | undefined
  /** The number of children that were replaced. */
  restarts: number
}

/** The next answer of the child, also to the same question of others; undefined where none runs. */
const ask = (child: ChildProcess | undefined, question: string) =>
  Effect.callback<unknown>((resume) => {
    if (child?.connected !== true) return resume(Effect.undefined)
    const forget = () => void child.off("message", onMessage).off("exit", onExit)
    const settle = (answer?: unknown) => {
      forget()
      resume(Effect.succeed(answer))
    }
    const onMessage = (message: unknown) => {
      if (isAnswer(message) && message.question === question) settle(message.answer)
    }
    const onExit = () => settle()
    child.on("message", onMessage).once("exit", onExit)
    child.send({ question }, (error) => {
      if (error !== null) settle()
    })
    return Effect.sync(forget)
  })

/** A child is probed this often, and hangs after so many failures: 3 seconds. */
const heartbeat = Duration.millis(250)
const maximumMissed = 12

/**
 * Returns once probes of a child have failed for 3 seconds. Only a probe whose timer ran on time counts: while this
 * process or the machine was stalled itself, it could not hear a healthy child.
 */
export const hangs = Effect.fnUntraced(function* (answer: Effect.Effect<unknown>) {
  let missed = 0
  while (missed < maximumMissed) {
    const [took, answered] = yield* Effect.timed(Effect.timeoutOption(answer, heartbeat))
    if (Option.isSome(answered)) {
      missed = 0
      yield* Effect.sleep(heartbeat)
    } else if (Duration.isLessThan(took, Duration.times(heartbeat, 2))) missed += 1
  }
})

const make = (count: number) => {
  const places = Array.from({ length: count }, (): Place => ({ child: undefined, restarts: 0 }))
  return {
    places,
    /** Asks all of them at once, for a second at most. No answer is undefined, and so is the `pid` of an empty place. */
    ask: (question: string) =>
      Effect.forEach(
        places,
        (place, index) =>
          Effect.map(Effect.timeoutOption(ask(place.child, question), "1 second"), (answer) => ({
            process: index + 1,
            pid: place.child?.pid,
            answer: Option.getOrUndefined(answer)
          })),
        { concurrency: "unbounded" }
      )
  }
}

export class Children extends Context.Service<Children, ReturnType<typeof make>>()(
  "practice-data/process/Processes/Children"
) {
  static readonly layer = (count: number) => Layer.sync(Children, () => make(count))
}

// A child needs a while more to end, for its last exports among other things.
const slack = Duration.seconds(4)

/** Starts a child and waits until it listens. `ended` fails once it ends; a child that hangs is killed. */
const start = Effect.fnUntraced(function* (place: Place, port: number, count: number, stopTimeout: Duration.Duration) {
  const listening = yield* Deferred.make<string>()
  const end = yield* Deferred.make<never, ChildEnded>()
  const ended = Deferred.await(end)
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const started = fork(moduleBeside(import.meta.url, "../main"), ["child", String(port)], {
        execArgv: argumentsOfEach(count)
      })
      place.child = started
      // One for each question that waits for its answer. The operators' listener has a limit.
      started.setMaxListeners(0)
      started.on("message", (message) => {
        if (isAnnouncement(message)) Deferred.doneUnsafe(listening, Effect.succeed(message.address))
      })
      const settle = (reason: Effect.Effect<never, ChildEnded>) => {
        place.child = undefined
        Deferred.doneUnsafe(end, reason)
      }
      started.once("exit", (code, signal) => {
        const message = `A process exited with ${signal ?? `code ${code}`}`
        settle(Effect.fail(new ChildEnded({ message, hasPrinted: (code ?? 0) > 0 })))
      })
      // It never began, such as where the system has no process left. Nobody has printed why.
      started.on("error", (error) => settle(Effect.die(error)))
      return started
    }),
    (started) =>
      Effect.sync(() => started.kill("SIGTERM")).pipe(
        Effect.andThen(Effect.exit(ended)),
        Effect.timeoutOrElse({
          duration: Duration.sum(stopTimeout, slack),
          orElse: () => Effect.sync(() => started.kill("SIGKILL"))
        })
      )
  )
  const address = yield* Effect.raceFirst(Deferred.await(listening), ended)
  const killed = Effect.gen(function* () {
    yield* hangs(ask(child, probe))
    yield* Effect.logWarning(`Killing process ${child.pid}: no response for 3 seconds`)
    child.kill("SIGKILL")
    return yield* ended
  })
  return { address, ended: Effect.raceFirst(ended, killed) }
})

/** The port of an address of HTTP, which leaves out 80. */
export const portOf = (address: string) => Number(new URL(address).port || 80)

type Address = Readonly<{ host: string; port: number }>

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
  const keep = (place: Place, wantedPort: number) => {
    let port = wantedPort
    const run = Effect.gen(function* () {
      const { address, ended } = yield* start(place, port, places.length, stopTimeout)
      port = portOf(address)
      yield* Deferred.succeed(listening, address)
      return yield* ended
    }).pipe(
      Effect.scoped,
      Effect.catchTag("ChildEnded", (error) => {
        place.restarts += 1
        return Effect.flatMap(Deferred.fail(listening, error), (isFirst) =>
          // The text alone: its stack trace says nothing.
          isFirst ? Effect.void : Effect.fail(error.message)
        )
      })
    )
    return Effect.forkIn(Loop.restarting("A process", run), together)
  }
  const [first, ...others] = places
  if (first === undefined) return
  yield* keep(first, wanted)
  const address = yield* Deferred.await(listening)
  yield* Effect.log(`Listening on ${address}`)
  yield* Effect.forEach(others, (place) => keep(place, portOf(address)), { discard: true })
})
