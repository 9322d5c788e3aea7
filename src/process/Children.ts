/** Several processes of one service: what the parent asks its children, and what they answer. */
import type { ChildProcess } from "node:child_process"
import { Context, Deferred, Duration, Effect, Layer, Option, Schema } from "effect"

const Question = Schema.Struct({ question: Schema.String })
const Answer = Schema.Struct({ question: Schema.String, answer: Schema.Unknown })
/** The question that a child answers as long as its event loop turns, while it drains too. */
export const probe = "alive"

const isQuestion = Schema.is(Question)
const isAnswer = Schema.is(Answer)

/**
 * In a child: answers the questions of the parent until the scope closes.
 *
 * @param others the answer to each question but the probe: plain JSON
 */
export const answering = Effect.fnUntraced(function* (others: Readonly<Record<string, Effect.Effect<unknown>>>) {
  const answers: typeof others = { ...others, [probe]: Effect.succeed(true) }
  const fork = Effect.runForkWith(yield* Effect.context())
  const onMessage = (message: unknown) => {
    if (!isQuestion(message)) return
    const { question } = message
    const answer = answers[question]
    // The parent may have gone meanwhile.
    if (answer !== undefined) fork(Effect.map(answer, (value) => process.send?.({ question, answer: value }, () => {})))
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("message", onMessage)),
    () => Effect.sync(() => process.off("message", onMessage))
  )
})

/** The place of a child, and of each that replaces it. */
export class Place {
  #child: ChildProcess | undefined
  #starts = 0
  readonly #asked = new Map<string, Deferred.Deferred<unknown>>()

  /** A child has started. */
  enter(child: ChildProcess) {
    this.#child = child
    this.#starts += 1
    child.on("message", (message) => {
      if (isAnswer(message)) this.#settle(message.question, message.answer)
    })
    child.once("exit", () => {
      this.#child = undefined
      for (const question of this.#asked.keys()) this.#settle(question, undefined)
    })
  }

  /** Of the child that runs. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** How many children were replaced. */
  get restarts(): number {
    return Math.max(0, this.#starts - 1)
  }

  /** The answer of the child, undefined where none runs. One that has not answered yet is not asked again. */
  ask(question: string): Effect.Effect<unknown> {
    return Effect.suspend(() => {
      const asked = this.#asked.get(question)
      if (asked !== undefined) return Deferred.await(asked)
      if (this.#child?.connected !== true) return Effect.undefined
      const answer = Deferred.makeUnsafe<unknown>()
      this.#asked.set(question, answer)
      this.#child.send({ question }, (error) => {
        if (error !== null) this.#settle(question, undefined)
      })
      return Deferred.await(answer)
    })
  }

  #settle(question: string, answer: unknown) {
    const asked = this.#asked.get(question)
    this.#asked.delete(question)
    if (asked !== undefined) Deferred.doneUnsafe(asked, Effect.succeed(answer))
  }
}

/** What became of a question to a child. */
export interface Answered {
  /** Which of the children, from 1. One that replaces another one has its number. */
  readonly process: number
  /** Undefined where none runs. */
  readonly pid: number | undefined
  /** Undefined where there was none in time. */
  readonly answer: unknown
}

/** How long a child has to answer. */
const within = Duration.seconds(1)

/** A child is asked for a sign of life this often, and hangs once it has missed so many: 3 seconds. */
const beat = Duration.millis(250)
const mostMissed = 12

/**
 * Returns once probes of a child have failed for 3 seconds. Only a probe whose timer ran on time counts: while this
 * process was stopped or stalled itself, or the machine was, it heard nothing of a child that is well.
 *
 * @param answer ends when the child has answered
 */
export const hangs = Effect.fnUntraced(function* (answer: Effect.Effect<unknown>) {
  let missed = 0
  while (missed < mostMissed) {
    const [took, answered] = yield* Effect.timed(Effect.timeoutOption(answer, beat))
    if (Option.isSome(answered)) yield* Effect.sleep(beat)
    if (Option.isSome(answered)) missed = 0
    else if (Duration.isLessThan(took, Duration.times(beat, 2))) missed += 1
  }
})

/** The children of this process. */
export class Children extends Context.Service<
  Children,
  {
    readonly places: ReadonlyArray<Place>
    /** Asks all of them at once. Takes a second at most. */
    readonly ask: (question: string) => Effect.Effect<ReadonlyArray<Answered>>
  }
>()("practice-data/process/Children") {
  /** Places for children, in which none runs yet. */
  static readonly layer = (count: number) =>
    Layer.sync(Children, () => {
      const places = Array.from({ length: count }, () => new Place())
      return Children.of({
        places,
        ask: (question) =>
          Effect.forEach(
            places,
            (place, index) =>
              place.ask(question).pipe(
                Effect.timeoutOrElse({ duration: within, orElse: () => Effect.undefined }),
                Effect.map((answer): Answered => ({ process: index + 1, pid: place.pid, answer }))
              ),
            { concurrency: "unbounded" }
          )
      })
    })
}
