/** Children of a service of several processes: the questions of the parent, and the answers. */
import type { ChildProcess } from "node:child_process"
import { Context, Duration, Effect, Layer, Option, Schema } from "effect"

const isQuestion = Schema.is(Schema.Struct({ question: Schema.String }))
const isAnswer = Schema.is(Schema.Struct({ question: Schema.String, answer: Schema.Unknown }))

/** The question that a child answers as long as its event loop turns, also while it drains. */
export const probe = "alive"

/** Answers the questions of the parent with plain JSON, in a child, until the scope closes. */
export const answering = Effect.fnUntraced(function* (others: Readonly<Record<string, Effect.Effect<unknown>>>) {
  const answers: typeof others = { ...others, [probe]: Effect.succeed(true) }
  const fork = Effect.runForkWith(yield* Effect.context())
  const onMessage = (message: unknown) => {
    if (!isQuestion(message)) return
    const { question } = message
    const answer = answers[question]
    // The parent may be gone by then.
    if (answer !== undefined) fork(Effect.map(answer, (value) => process.send?.({ question, answer: value }, () => {})))
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("message", onMessage)),
    () => Effect.sync(() => process.off("message", onMessage))
  )
})

/** The place of a child, and of each that replaces it. */
export interface Place {
  child: ChildProcess | undefined
  /** The number of children that were replaced. */
  restarts: number
}

/** The next answer of the child, also to the same question of others; undefined where none runs. */
export const ask = (place: Place, question: string) =>
  Effect.callback<unknown>((resume) => {
    const { child } = place
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

const answerTimeout = Duration.seconds(1)

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
          Effect.map(Effect.timeoutOption(ask(place, question), answerTimeout), (answer) => ({
            process: index + 1,
            pid: place.child?.pid,
            answer: Option.getOrUndefined(answer)
          })),
        { concurrency: "unbounded" }
      )
  }
}

export class Children extends Context.Service<Children, ReturnType<typeof make>>()("practice-data/process/Children") {
  static readonly layer = (count: number) => Layer.sync(Children, () => make(count))
}
