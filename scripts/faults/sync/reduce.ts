/** Finds out which steps of a history that fails are needed for that. */
import { Effect } from "effect"
import type { History } from "./History.ts"
import { isFailed } from "./outcome.ts"
import { play } from "./play.ts"
import type { Stand } from "./Stand.ts"

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
