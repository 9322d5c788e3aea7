/**
 * Jobs on large bodies, in one worker thread: hostile bodies do not block the event loop. The thread starts with the first
 * job, takes one at a time, and returns small values only.
 */
import { Worker } from "node:worker_threads"
import { Data, Effect, Semaphore } from "effect"
import { moduleBeside } from "../process/Package.ts"

/** Too many large bodies are waiting for the thread, or it ran out of memory. */
export class LargeBodiesBusy extends Data.TaggedError("LargeBodiesBusy") {}

/** A module that has a job. Its input and its output are cloned on their way. */
interface JobModule {
  readonly job: (input: never) => unknown
}

export interface Message {
  readonly module: string
  readonly input: unknown
}

/** The maximum number of jobs. Bodies in memory have a limit of their own. */
const maximumWaiting = 512

export const busy = new LargeBodiesBusy()
const places = Semaphore.makeUnsafe(maximumWaiting)
const turn = Semaphore.makeUnsafe(1)
let running: Worker | undefined

const start = () => {
  const worker = new Worker(moduleBeside(import.meta.url, "LargeBodyThread"), {
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 256 }
  })
  worker.once("exit", () => {
    if (running === worker) running = undefined
  })
  return worker
}

const runNow = <Output>(message: Message) =>
  Effect.callback<Output, LargeBodiesBusy>((resume) => {
    const worker = (running ??= start())
    const end = (result: Effect.Effect<Output, LargeBodiesBusy>) => {
      worker.off("message", succeed).off("error", fail)
      worker.unref()
      resume(result)
    }
    const succeed = (output: Output) => end(Effect.succeed(output))
    const fail = (cause: unknown) => {
      running = undefined
      end(Effect.andThen(Effect.logError("The thread for large bodies failed", cause), Effect.fail(busy)))
    }
    worker.on("message", succeed).on("error", fail)
    worker.ref()
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    worker.postMessage(message)
  })

/** Runs the job of a module in the thread, in turn. */
export const run = <M extends JobModule>(
  module: URL,
  input: Parameters<M["job"]>[0]
): Effect.Effect<ReturnType<M["job"]>, LargeBodiesBusy> =>
  turn
    .withPermit(Effect.uninterruptible(runNow<ReturnType<M["job"]>>({ module: module.href, input })))
    .pipe(places.withPermitsIfAvailable(1), Effect.flatMap(Effect.fromOption(() => busy)))
