/**
 * Fairness between organizations: the bounds of a backlog, and the turns in which due tasks are claimed. The scheduler
 * in memory and the one over Postgres share these decisions.
 */
import { Array, Clock, Duration, Effect, Option, Order } from "effect"
import type { ClaimLimits, Taken } from "./Task.ts"

/** Limits for tasks, and for bytes of payload as they are stored. */
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

/** The backlog of an organization, counted up to its bound. */
export interface Pending extends Bound {
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

/** Due tasks of an organization, as far as they are counted. */
interface Due {
  readonly organization: string
  readonly due: number
}

/** A visit to an organization. `visits`: its number, counting visits to organizations with nothing due. */
export interface Visit extends Due {
  readonly visits: number
}

/** The number of tasks of an organization to claim. */
export interface Share {
  readonly organization: string
  readonly tasks: number
}

/** The number of organizations that are visited at once. */
export const mostVisits = 256

const byDue = Order.mapInput(Order.Number, ({ due }: Due) => due)

/** Shares places equally. Places that an organization does not need go to the others. */
export const sharesOf = (all: ReadonlyArray<Due>, places: number) => {
  const some = all.slice(0, places)
  let left = places
  return Array.sort(some, byDue).map(({ due, organization }, index) => {
    const tasks = Math.min(due, Math.floor(left / (some.length - index)))
    left -= tasks
    return { organization, tasks }
  })
}

interface Claiming<E> {
  /** True where tasks are never claimed without shares. */
  readonly isAlwaysInTurn: () => boolean
  /**
   * Visits organizations after one, in the order of their ids, and counts due tasks up to a limit. It may leave out
   * those with nothing due, except the last of `mostVisits`.
   */
  readonly visit: (after: string, limit: number) => Effect.Effect<ReadonlyArray<Visit>, E>
  /** Claims tasks. With shares, due tasks are those of the shares. */
  readonly claim: (
    limits: ClaimLimits,
    lease: Duration.Duration,
    shares: ReadonlyArray<Share>
  ) => Effect.Effect<ReadonlyArray<Taken>, E>
}

/**
 * Claims tasks in turns. While every due task fits into a claim, the oldest go first. A full claim may leave a backlog:
 * then organizations are visited in the order of their ids, and a claim shares its places equally among the next ones.
 * A visit is one look into an index, however long the backlog of an organization is.
 */
export const makeTurns = <E>({ claim, isAlwaysInTurn, visit }: Claiming<E>) => {
  let isBehind = false
  let waiting: ReadonlyArray<Due> = []
  const places = { all: "", others: "" }

  const visitNext = Effect.fnUntraced(function* (place: keyof typeof places, limit: number) {
    const visited = yield* visit(places[place], limit)
    const end = visited.at(-1)
    places[place] = end?.visits === mostVisits ? end.organization : ""
    return visited.filter(({ due }) => due > 0)
  })

  /** The shares of the next organizations; none if the oldest tasks go first. */
  const next = Effect.fnUntraced(function* (limit: number) {
    if (limit === 0 || !(isBehind || isAlwaysInTurn())) return []
    const some = waiting.length > 0 ? waiting : yield* visitNext("all", limit)
    waiting = some.slice(limit)
    return sharesOf(some, limit)
  })

  /** The shares of organizations other than these. */
  const others = Effect.fnUntraced(function* (except: ReadonlySet<string>, limit: number) {
    if (limit === 0) return []
    const due = (yield* visitNext("others", limit)).filter(({ organization }) => !except.has(organization))
    const cut = due.length > limit ? due[limit - 1] : undefined
    if (cut !== undefined) places.others = cut.organization
    return sharesOf(due, limit)
  })

  return Effect.fnUntraced(function* (limits: ClaimLimits, lease: Duration.Duration) {
    const { due = 0, except } = limits
    if (except !== undefined) {
      const shares = yield* others(except, due)
      return yield* claim(shares.length > 0 ? limits : { ...limits, due: 0 }, lease, shares)
    }
    const shares = yield* next(due)
    const taken = yield* claim(limits, lease, shares)
    if (due === 0) return taken
    const left = due - taken.filter(({ isTakeover }) => !isTakeover).length
    // Places that the organizations of the turn do not need go to the oldest tasks of all.
    const more = left > 0 && shares.length > 0 ? yield* Effect.option(claim({ due: left }, lease, [])) : Option.none()
    const all = [...taken, ...Option.getOrElse(more, () => [])]
    isBehind = all.length >= due
    if (!isBehind) waiting = []
    return all
  })
}
