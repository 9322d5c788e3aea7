/**
 * The walk of a reader through the changes: what it has not seen yet.
 *
 * The position of a change is the id of its transaction. Transactions do not end in the order of their ids, so a walk is a
 * place in the order, and the transactions before that place that were still running when their changes were to be read.
 * A place is always one of a change that was read, or is below a mark: so a crash never gives out an id below it again.
 */
import { Array, Order, Schema } from "effect"

// Before all changes, it is -1. A bound of a load is the maximum until its first page.
export const Position = Schema.Int.check(Schema.isGreaterThanOrEqualTo(-1))

// Postgres has no text with U+0000 or half of a pair of surrogates.
const Text = Schema.String.check(Schema.makeFilter((text: string) => text.isWellFormed() && !text.includes("\0")))

/** The place of a change in the order: by position, then id, then branch. */
const Place = Schema.Struct({
  position: Position,
  id: Text,
  /** The table, with `-` behind it for a removal. */
  branch: Text
})
export type Place = typeof Place.Type

/** The place before all changes of a position. */
const beforeAll = (position: number): Place => ({ position, id: "", branch: "" })

export const start = beforeAll(-1)

/** The place after all changes below a position. One whose id is not ASCII may come once more. */
const afterAllBelow = (position: number): Place => ({ position: position - 1, id: "~", branch: "~" })

/** The transactions whose changes a statement sees: those below `next` that are not running. */
export interface Visible {
  readonly next: number
  /** Ascending. */
  readonly running: ReadonlyArray<number>
}

/** The most running transactions that a cursor has room for. Beyond, the feed is busy. */
export const maximumRunning = 1000

export const Walk = Schema.Struct({
  /** The token of the feed of each resource. */
  feeds: Schema.Record(Schema.String, Schema.String),
  /** Changes after it have not been read. */
  place: Place,
  /** The transactions before the place whose changes have not been read, ascending. */
  running: Schema.Array(Schema.Int).check(Schema.isMaxLength(2 * maximumRunning)),
  /** The place in a transaction whose changes have been read in part. */
  partial: Schema.optional(Place),
  /**
   * Set until the first load is complete: the lowest horizon of its pages. The reader never had the records of the removals
   * below it.
   */
  floor: Schema.optional(Position)
})
export type Walk = typeof Walk.Type

const maximumPosition = Number.MAX_SAFE_INTEGER

/** The walk of a reader who has nothing. */
export const fromStart = (feeds: Walk["feeds"]): Walk => ({
  feeds,
  place: start,
  running: [],
  floor: maximumPosition
})

/** All transactions below it have ended. */
const firstOpen = ({ next, running }: Visible): number => running[0] ?? next

const isVisible = ({ next, running }: Visible, position: number) => position < next && !running.includes(position)

/** Changes after a place, and below a position. */
interface Range extends Place {
  readonly high: number
  /** True for the range of a load, whose removals are left out. */
  readonly isLoad: boolean
}

const rest = (place: Place, high: number, isLoad = false): Range => ({ ...place, high, isLoad })

/** The ranges that a walk has not read, in the order in which they are read. No change is in two of them. */
export const toRanges = ({ floor, partial, place, running }: Walk): ReadonlyArray<Range> => [
  ...(partial === undefined ? [] : [rest(partial, partial.position + 1)]),
  ...running.map((position) => rest(beforeAll(position), position + 1)),
  ...(floor === undefined
    ? [rest(place, maximumPosition)]
    : [rest(place, floor, true), rest(beforeAll(floor), maximumPosition)])
]

/**
 * The lowest position at which a walk needs removals. During a load this is the floor: a reader without a copy needs none
 * below it.
 */
export const lowestRemoval = ({ floor, partial, place, running }: Walk): number =>
  Math.min(...[partial?.position, running[0], floor ?? place.position].filter((position) => position !== undefined))

export const byPlace = Order.Struct({ position: Order.Number, id: Order.String, branch: Order.String })
export const isAfter = Order.isGreaterThan(byPlace)

const furthest = Order.max(byPlace)

const ascending = (positions: ReadonlyArray<number>) => Array.sort(Array.dedupe(positions), Order.Number)

/** The positions before a place whose changes are not visible. */
const hidden = (visible: Visible, place: Place, positions: ReadonlyArray<number>) =>
  ascending(positions.filter((position) => position < place.position && !isVisible(visible, position)))

/** The transactions before the place of a walk that it has not read to their end. */
const unread = ({ partial, running }: Walk) => (partial === undefined ? running : [partial.position, ...running])

/** The floor of a load after a page, whose walk is at `position` then. */
const floorAfter = ({ floor }: Walk, visible: Visible, position: number) => {
  const lowest = floor === undefined ? position : Math.min(floor, firstOpen(visible))
  return lowest > position + 1 ? lowest : undefined
}

/** The walk that has read all visible changes up to a place. A hidden transaction is read as a whole once it is visible. */
const moveTo = (walk: Walk, visible: Visible, place: Place): Walk => ({
  feeds: walk.feeds,
  place,
  running: hidden(visible, place, [...unread(walk), ...visible.running]),
  floor: floorAfter(walk, visible, place.position)
})

/** The walk after a page that ends at a place, with more behind it. */
export const advanceTo = (walk: Walk, visible: Visible, last: Place): Walk => {
  const { partial, place, running } = walk
  const isInPartial = last.position === partial?.position
  if (!isInPartial && !running.includes(last.position)) return moveTo(walk, visible, last)
  const left = isInPartial ? running : running.filter((position) => position > last.position)
  return {
    ...walk,
    partial: last,
    running: ascending([...left, ...hidden(visible, place, unread(walk))]),
    floor: floorAfter(walk, visible, place.position)
  }
}

/**
 * The walk after a page that has read all that a server shows.
 *
 * @param last the place of the last change of the page
 * @param durable all transactions below it have ended, and their ids are not given out again
 */
export const advanceToEnd = (walk: Walk, visible: Visible, last: Place | undefined, durable: number): Walk => {
  const reached = last === undefined ? walk.place : furthest(walk.place, last)
  const place = furthest(reached, afterAllBelow(Math.min(durable, firstOpen(visible))))
  return moveTo(walk, visible, place)
}

/** One walk of several that have read all that a snapshot shows. */
export const merge = (walks: ReadonlyArray<Walk>, visible: Visible): Walk => {
  const place = walks.map((walk) => walk.place).reduce(furthest, start)
  const feeds: Record<string, string> = Object.assign({}, ...walks.map((walk) => walk.feeds))
  const floor = Math.max(...walks.map((walk) => walk.floor ?? 0))
  return {
    feeds,
    place,
    running: hidden(visible, place, visible.running),
    floor: floor > place.position && walks.every((walk) => walk.floor !== undefined) ? floor : undefined
  }
}

/** The walk whose changes from a position on are read again: their transactions may not be those that it has seen. */
export const setBack = (walk: Walk, position: number): Walk => ({
  ...walk,
  place: walk.place.position < position ? walk.place : afterAllBelow(position),
  running: walk.running.filter((one) => one < position),
  partial: walk.partial !== undefined && walk.partial.position < position ? walk.partial : undefined
})
