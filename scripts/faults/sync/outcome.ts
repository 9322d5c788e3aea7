/** What a history came to. */
import type { Copy } from "./Reader.ts"

/** What a reader had in the end. */
export interface Outcome {
  /** Records that are not in the copy, and those in the copy that are no more. */
  readonly lost: number
  /** Records that are in the copy, and not as they are. */
  readonly stale: number
  readonly pages: number
  /** What else went wrong, in words. */
  readonly trouble: string | undefined
}

/** A played history. */
export interface Played {
  readonly outcomes: ReadonlyArray<Outcome>
  /** What happened, step by step. */
  readonly story: () => string
}

/** True if a reader lost anything. */
const isBroken = ({ lost, stale, trouble }: Outcome) => trouble !== undefined || lost + stale > 0

/** True if any reader of a history lost anything. */
export const isFailed = ({ outcomes }: Played) => outcomes.some(isBroken)

/** Counts readers, and what went wrong. */
export const tally = (outcomes: ReadonlyArray<Outcome>) => {
  const sum = (of: (outcome: Outcome) => number) =>
    outcomes.reduce((all, outcome) => all + of(outcome), 0).toLocaleString("en")
  const [lost, stale] = [sum((of) => of.lost), sum((of) => of.stale)]
  const others = sum(({ trouble }) => (trouble === undefined ? 0 : 1))
  return `${sum(() => 1)} readers, ${sum((of) => of.pages)} pages, ${lost} lost, ${stale} stale, ${others} other faults`
}

/** How a copy differs from the records that there are, in numbers and in words. */
export const compare = (truth: Copy, copy: Copy) => {
  const missing: Array<string> = []
  const stale: Array<string> = []
  for (const [id, record] of truth) {
    const held = copy.get(id)
    if (held === undefined) missing.push(id)
    else if (held !== record) stale.push(`${id}: ${held} instead of ${record}`)
  }
  const gone = [...copy.keys()].filter((id) => !truth.has(id))
  return {
    lost: missing.length + gone.length,
    stale: stale.length,
    seen: `missing ${missing.join()}; stale ${stale.join("; ")}; gone ${gone.join()}`
  }
}
