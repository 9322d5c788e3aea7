/**
 * How much an organization may have pending. What it has is counted in the database, and not for each delivery: a count
 * allows a sixteenth of what is left. So up to sixteen processes together stay within the bounds, but for the deliveries
 * that they store at the same moment.
 */
import { Clock, Duration, Effect } from "effect"

/** How many tasks, and how many bytes of payload as they are stored. */
export interface Bound {
  readonly tasks: number
  readonly bytes: number
}

const mebibyte = 1024 * 1024

/** The bounds of an organization with a row in `organizations`, and of one without. */
export const bounds = {
  known: { tasks: 100_000, bytes: 256 * mebibyte },
  unknown: { tasks: 10_000, bytes: 64 * mebibyte }
} as const satisfies Record<string, Bound>

export type Bounds = Readonly<Record<keyof typeof bounds, Bound>>

/** What an organization has pending. Tasks beyond its bound may be left out. */
export interface Pending extends Bound {
  readonly isKnown: boolean
}

const part = 16

/** For how long an organization that has all that it may is not counted again. */
const rest = Duration.toMillis("1 second")

/** More are counted again: anyone can make organizations up. */
const mostRemembered = 10_000

const isOpen = ({ bytes, tasks }: Bound) => tasks > 0 && bytes > 0

/** Returns whether a delivery of so many bytes may be stored, by a count of what its organization has pending. */
export const make = ({
  known,
  unknown
}: Bounds): (<E>(
  organization: string,
  size: number,
  count: Effect.Effect<Pending, E>
) => Effect.Effect<boolean, E>) => {
  const allowances = new Map<string, Bound & { readonly until: number }>()
  return Effect.fnUntraced(function* (organization, size, count) {
    const now = yield* Clock.currentTimeMillis
    let allowance = allowances.get(organization)
    if (allowance === undefined || (!isOpen(allowance) && now >= allowance.until)) {
      const pending = yield* count
      const bound = pending.isKnown ? known : unknown
      const left = { tasks: bound.tasks - pending.tasks, bytes: bound.bytes - pending.bytes }
      allowance = isOpen(left)
        ? { tasks: Math.ceil(left.tasks / part), bytes: Math.ceil(left.bytes / part), until: 0 }
        : { tasks: 0, bytes: 0, until: now + rest }
    }
    const { bytes, tasks, until } = allowance
    // The organization that was asked for last is remembered the longest.
    allowances.delete(organization)
    allowances.set(organization, isOpen(allowance) ? { tasks: tasks - 1, bytes: bytes - size, until } : allowance)
    const [oldest = organization] = allowances.keys()
    if (allowances.size > mostRemembered) allowances.delete(oldest)
    return isOpen(allowance)
  })
}
