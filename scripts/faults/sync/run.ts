/** Plays many histories, several at once, each kind on its own stands. */
import { Console, Duration, Effect } from "effect"
import { generate } from "./generate.ts"
import type { History } from "./History.ts"
import { isFailed, type Outcome, type Played, tally } from "./outcome.ts"
import { play } from "./play.ts"
import type { Stand } from "./Stand.ts"

/** True if the history of a number is one for the embedded database. */
const isEmbedded = (number: number) => number % 20 === 0

/** How often a history is played at most. */
const patience = 400

/** Leaves out steps, first many and then fewer at once, for as long as the history still fails. */
export const reduce = Effect.fnUntraced(function* (stand: Stand, history: History) {
  let smallest = history
  let tries = 0
  for (let size = Math.ceil(history.steps.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let at = 0; at < smallest.steps.length && tries < patience;) {
      const candidate = { ...smallest, steps: smallest.steps.toSpliced(at, size) }
      tries++
      if (isFailed(yield* play(stand, candidate))) smallest = candidate
      else at += size
    }
  }
  return smallest
})

interface Options {
  readonly seed: number
  readonly numbers: ReadonlyArray<number>
  /** Stands of real Postgres, each of which plays one history at a time. */
  readonly stands: ReadonlyArray<Stand>
  readonly embedded: Stand
  /** The share of the histories in which servers crash, fail over, and are restored. */
  readonly events: number
  /** True if a history that fails is told without the steps that are not needed for that. */
  readonly isReduced: boolean
}

/** Plays the histories, tells of those that fail, and counts. */
export const run = Effect.fnUntraced(function* ({ embedded, events, isReduced, numbers, seed, stands }: Options) {
  const outcomes: Array<Outcome> = []
  const failed: Array<number> = []
  let done = 0

  const tell = Effect.fnUntraced(function* (stand: Stand, history: History, first: Played) {
    yield* Console.log(`\n${first.story()}\n`)
    if (!isReduced) return
    const smallest = yield* reduce(stand, history)
    yield* Console.log(`With ${smallest.steps.length} of ${history.steps.length} steps:`)
    // It may need luck.
    for (let attempt = 0; attempt < 5; attempt++) {
      const again = yield* play(stand, smallest)
      if (!isFailed(again)) continue
      yield* Console.log(`${again.story()}\n`)
      return
    }
  })

  const one = Effect.fnUntraced(function* (stand: Stand, number: number) {
    const history = yield* generate(stand, seed, number, events)
    const played = yield* play(stand, history)
    outcomes.push(...played.outcomes)
    if (isFailed(played)) {
      failed.push(number)
      // Three are told step by step.
      if (failed.length <= 3) yield* tell(stand, history, played)
    }
    done++
  })

  const lane = Effect.fnUntraced(function* (stand: Stand, queue: Array<number>) {
    for (let number = queue.shift(); number !== undefined; number = queue.shift()) yield* one(stand, number)
  })
  const onPostgres = numbers.filter((number) => !isEmbedded(number))
  const lanes = [...stands.map((stand) => lane(stand, onPostgres)), lane(embedded, numbers.filter(isEmbedded))]
  const progress = Effect.suspend(() => Console.log(`${done} of ${numbers.length}, failed ${failed.length}`)).pipe(
    Effect.delay("10 seconds"),
    Effect.forever
  )
  const all = Effect.all(lanes, { concurrency: "unbounded", discard: true })
  const [took] = yield* Effect.timed(Effect.raceFirst(all, progress))
  const seconds = Duration.toSeconds(took)
  return { tally: tally(outcomes), failed: failed.toSorted((first, second) => first - second), seconds }
})
