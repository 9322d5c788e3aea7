/**
 * Whose due tasks are claimed next. While every due task fits into a claim, the oldest go first. Once a claim is full, there
 * may be a backlog, and organizations take turns: they are visited in the order of their ids, and a claim shares its
 * places equally among the next ones. Within an organization the oldest tasks go first.
 *
 * A visit costs a look into an index, however long the backlog of an organization is, and their number is bounded.
 */
import { Array, Clock, Duration, Effect, Order } from "effect"

/** How many tasks of an organization are due, as far as they are counted. */
interface Due {
  readonly organization: string
  readonly due: number
}

/** A visit to an organization. `visits`: how many there were up to this one, with those to organizations with nothing due. */
export interface Visit extends Due {
  readonly visits: number
}

/** How many tasks of an organization to claim. */
export interface Share {
  readonly organization: string
  readonly tasks: number
  /** How many more are due. */
  readonly left: number
}

/** How many organizations are visited at once. */
export const mostVisits = 256

/** For how many claims the tasks of an organization are counted. */
const claims = 4

/** For how long organizations are served by what was counted, where all were visited. */
const fresh = Duration.toMillis("250 millis")

const byDue = Order.mapInput(Order.Number, ({ due }: Due) => due)

/** Shares the places of a claim equally. Places that an organization does not need go to the others. */
const sharesOf = (all: ReadonlyArray<Due>, limit: number): ReadonlyArray<Share> => {
  let places = limit
  return Array.sort(all, byDue).map(({ due, organization }, index) => {
    const tasks = Math.min(due, Math.floor(places / (all.length - index)))
    places -= tasks
    return { organization, tasks, left: due - tasks }
  })
}

/**
 * Visits organizations after one, in the order of their ids, and counts up to a limit what is due. It may leave out
 * those with nothing due, except the last of `mostVisits`.
 */
type Visiting<E> = (after: string, limit: number) => Effect.Effect<ReadonlyArray<Visit>, E>

/** The turns of a worker. */
export const make = () => {
  let isBehind = false
  let visitedAt = 0
  let waiting: ReadonlyArray<Due> = []
  let served: ReadonlyArray<Due> = []
  const places = { all: "", others: "" }

  const visitNext = Effect.fnUntraced(function* <E>(place: keyof typeof places, limit: number, visit: Visiting<E>) {
    const visited = yield* visit(places[place], limit)
    const end = visited.at(-1)
    places[place] = end?.visits === mostVisits ? end.organization : ""
    return visited.filter(({ due }) => due > 0)
  })

  return {
    /** The shares of the organizations whose turn it is; empty when the oldest tasks go first. */
    next: Effect.fnUntraced(function* <E>(limit: number, visit: Visiting<E>) {
      if (!isBehind || limit === 0) return []
      const now = yield* Clock.currentTimeMillis
      if (waiting.length === 0) {
        const isFresh = served.length > 0 && places.all === "" && Math.abs(now - visitedAt) < fresh
        waiting = isFresh ? served : yield* visitNext("all", claims * limit, visit)
        visitedAt = isFresh ? visitedAt : now
        served = []
      }
      const shares = sharesOf(waiting.slice(0, limit), limit)
      waiting = waiting.slice(limit)
      const more = shares.filter(({ left }) => left > 0)
      served = [...served, ...more.map(({ left, organization }) => ({ organization, due: left }))]
      return shares
    }),
    /** The shares of organizations other than these, whether there is a backlog or not. */
    others: Effect.fnUntraced(function* <E>(except: ReadonlySet<string>, limit: number, visit: Visiting<E>) {
      if (limit === 0) return []
      const due = (yield* visitNext("others", limit, visit)).filter(({ organization }) => !except.has(organization))
      const cut = due.length > limit ? due[limit - 1] : undefined
      if (cut !== undefined) places.others = cut.organization
      return sharesOf(due.slice(0, limit), limit)
    }),
    /** Notes whether a claim was full. */
    note: (isFull: boolean) => {
      isBehind = isFull
      if (!isFull) waiting = served = []
    }
  }
}
