/** The bounds of an organization's backlog. */
import { Clock, Duration, Effect } from "effect"

/** Limits for tasks, and for bytes of payload as they are stored. */
interface Bound {
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

/** The backlog of an organization, counted up to its bound. */
interface Pending extends Bound {
  readonly isKnown: boolean
}

/**
 * A count allows this part of the rest, so that this many processes together stay within the bounds, but for deliveries
 * that they store at the same moment.
 */
const part = 1 / 16

/** A full organization is counted again after this time. */
const rest = Duration.toMillis("1 second")

/** Anyone can make organizations up: beyond this number, the one that was longest unused is counted again. */
const mostRemembered = 10_000

const isOpen = ({ bytes, tasks }: Bound) => tasks > 0 && bytes > 0

/** Decides whether a delivery of some bytes may be stored. Not each delivery counts the backlog of its organization. */
export const makeRoom = ({ known, unknown }: Bounds) => {
  const allowances = new Map<string, Bound & { readonly until: number }>()
  return Effect.fnUntraced(function* <E>(organization: string, size: number, count: Effect.Effect<Pending, E>) {
    const now = yield* Clock.currentTimeMillis
    let allowance = allowances.get(organization)
    if (allowance === undefined || (!isOpen(allowance) && now >= allowance.until)) {
      const pending = yield* count
      const bound = pending.isKnown ? known : unknown
      const left = {
        tasks: Math.ceil((bound.tasks - pending.tasks) * part),
        bytes: Math.ceil((bound.bytes - pending.bytes) * part)
      }
      allowance = { ...left, until: isOpen(left) ? 0 : now + rest }
    }
    const hasRoom = isOpen(allowance)
    const { bytes, tasks, until } = allowance
    allowances.delete(organization)
    allowances.set(organization, hasRoom ? { tasks: tasks - 1, bytes: bytes - size, until } : allowance)
    const [oldest = organization] = allowances.keys()
    if (allowances.size > mostRemembered) allowances.delete(oldest)
    return hasRoom
  })
}
