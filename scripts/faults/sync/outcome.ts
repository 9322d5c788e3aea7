/** What a history came to. */
import { type Manner } from "./History.ts"
import type { Copy } from "./Reader.ts"
import type { Room } from "./Room.ts"

/** What a reader had in the end. */
export interface Outcome {
  readonly manner: Manner
  readonly room: Room
  /** Whether the reader reads all resources. */
  readonly isOfAll: boolean
  /** How many records there are. */
  readonly records: number
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
export const isBroken = ({ lost, stale, trouble }: Outcome) => trouble !== undefined || lost + stale > 0

/** True if any reader of a history lost anything. */
export const isFailed = ({ outcomes }: Played) => outcomes.some(isBroken)

/** How a copy differs from the records that there are. */
export const compare = (truth: Copy, copy: Copy) => {
  const missing: Array<string> = []
  const stale: Array<string> = []
  for (const [id, record] of truth) {
    const held = copy.get(id)
    if (held === undefined) missing.push(id)
    else if (held !== record) stale.push(`${id}: ${held} instead of ${record}`)
  }
  return { missing, stale, gone: [...copy.keys()].filter((id) => !truth.has(id)) }
}
