/**
 * Readers. Each keeps a copy of the records of a room, a page at a time, and can begin again from what it saved last, as
 * after a kill.
 */
import { DateTime, Effect } from "effect"
import type { Manner } from "./History.ts"
import type { Kind } from "./Room.ts"
import { type Ask, changes, type Fields, json, Refused, search } from "./Service.ts"

/** A copy: the JSON of each record, by id. */
export type Copy = ReadonlyMap<string, string>

/** What a page came to. */
export interface Read {
  readonly records: number
  /** Whether the reader has all that there is now, as far as it can know. */
  readonly isDone: boolean
  /** Whether the copy is the last committed state, by the service's own word. */
  readonly isCurrent: boolean
  /** In words. */
  readonly seen: string
}

export interface Reader {
  readonly copy: () => Copy
  /** Reads a page; one of changes waits so many seconds for something new. */
  readonly page: (limit: number, wait: number) => Effect.Effect<Read, Refused>
  readonly save: () => void
  readonly restart: () => void
}

export interface Options {
  readonly kind: Kind
  readonly key: string
  readonly ask: Ask
  /** How many milliseconds before the last time seen to start. */
  readonly margin: number
}

const idOf = (record: Fields) => String(record["id"])

const versionOf = (kind: Kind, record: Fields) => Number(/^v(\d+)$/.exec(String(record[kind.label]))?.[1] ?? Number.NaN)

/** By changes: applies each answer, and keeps its cursor. */
const byChanges = ({ ask, key, kind }: Options): Reader => {
  interface State {
    readonly copy: Copy
    /** The highest version of each record so far, also of those that were removed. */
    readonly versions: ReadonlyMap<string, number>
    readonly cursor: string | undefined
  }
  const empty: State = { copy: new Map(), versions: new Map(), cursor: undefined }
  let state = empty
  let saved = empty
  return {
    copy: () => state.copy,
    save: () => void (saved = state),
    restart: () => void (state = saved),
    page: Effect.fnUntraced(function* (limit, wait) {
      const { copy: before, cursor, versions: known } = state
      const request = { limit, ...(wait > 0 ? { wait } : {}), ...(cursor === undefined ? {} : { cursor }) }
      const page = yield* changes(ask, kind.resource, key, request)
      if (page === undefined) {
        state = empty
        return { records: 0, isDone: false, isCurrent: false, seen: "410" }
      }
      const { body, has_more: hasMore, lag, removed } = page
      if (body.length + removed.length > limit) {
        return yield* new Refused({ message: `${body.length} + ${removed.length} of at most ${limit}` })
      }
      if (hasMore && page.cursor === cursor)
        return yield* new Refused({ message: "There is more, and the cursor stays" })
      const copy = new Map(before)
      const versions = new Map(known)
      for (const id of removed) copy.delete(id)
      for (const record of body) {
        const id = idOf(record)
        if (removed.includes(id)) return yield* new Refused({ message: `${id} is there and removed` })
        const version = versionOf(kind, record)
        if (version < (versions.get(id) ?? 0)) {
          return yield* new Refused({ message: `${id} came as v${version} after v${versions.get(id)}` })
        }
        versions.set(id, version)
        copy.set(id, yield* json(record))
      }
      state = { copy, versions, cursor: page.cursor }
      return {
        records: body.length + removed.length,
        isDone: !hasMore,
        isCurrent: !hasMore && lag === 0,
        seen: `${body.map((record) => `${idOf(record)}=${String(record[kind.label])}`).join(" ")} removed ${removed.join(" ")}; ${hasMore ? "more" : "no more"}, lag ${lag}`
      }
    })
  }
}

const everything = (kind: Kind) => (kind.isMarked === true ? { include_deleted: true } : {})

const timeOf = ({ time }: Kind, record: Fields) => (time === undefined ? undefined : String(record[time.column]))

const seenOf = (kind: Kind, body: ReadonlyArray<Fields>) =>
  body.map((record) => `${idOf(record)}=${String(record[kind.label])}`).join(" ")

const before = (time: string, millis: number) =>
  DateTime.formatIso(DateTime.subtract(DateTime.makeUnsafe(time), { milliseconds: millis }))

const earlier = (one: string, another: string) => (another < one ? another : one)

const later = (one: string | undefined, another: string | undefined) =>
  one === undefined || (another !== undefined && another > one) ? another : one

/**
 * By search alone, as the documentation says: round after round, each from `margin` before the last time seen or before
 * the round before began, with pages that overlap by one record inside a millisecond.
 */
const byOverlap = ({ ask, key, kind, margin }: Options): Reader => {
  interface State {
    readonly copy: Copy
    /** From which time on the round reads. */
    readonly start: string | undefined
  }
  interface Round {
    /** The clock when it began. */
    readonly began: string | undefined
    readonly seen: string | undefined
    readonly since: string | undefined
    readonly offset: number
    /** The records that were read with the time of the filter. */
    readonly read: ReadonlySet<string>
  }
  const roundOf = ({ start }: State): Round => ({
    began: undefined,
    seen: undefined,
    since: start,
    offset: 0,
    read: new Set()
  })
  const empty: State = { copy: new Map(), start: undefined }
  let state = empty
  let saved = empty
  let round = roundOf(state)
  return {
    copy: () => state.copy,
    save: () => void (saved = state),
    restart: () => {
      state = saved
      round = roundOf(state)
    },
    page: Effect.fnUntraced(function* (asked) {
      // One record cannot overlap with the next.
      const limit = Math.max(2, asked)
      const { offset, read, since } = round
      const began = round.began ?? DateTime.formatIso(yield* DateTime.now)
      const filter = since === undefined || kind.time === undefined ? {} : { [kind.time.since]: since }
      const body = yield* search(ask, kind.resource, key, { limit, offset, ...filter, ...everything(kind) })
      const copy = new Map(state.copy)
      for (const record of body) copy.set(idOf(record), yield* json(record))
      state = { copy, start: state.start }
      const told = {
        records: body.length,
        isCurrent: false,
        seen: `since ${since} offset ${offset}: ${seenOf(kind, body)}`
      }
      const [first] = body
      const hasMoved = first === undefined || timeOf(kind, first) !== since || !read.has(idOf(first))
      if (offset > 0 && hasMoved) {
        round = { ...round, began, offset: Math.max(0, offset - Math.floor(limit / 2)) }
        return { ...told, isDone: false }
      }
      const last = body.at(-1)
      const seen = last === undefined ? round.seen : timeOf(kind, last)
      const time = seen ?? since
      const alike = body.filter((record) => timeOf(kind, record) === time).map(idOf)
      if (body.length < limit) {
        state = { copy, start: seen === undefined ? state.start : before(earlier(seen, began), margin) }
        round = roundOf(state)
        return { ...told, isDone: true }
      }
      const readNow = new Set(time === since ? [...read, ...alike] : alike)
      round = {
        began,
        seen,
        since: time,
        offset: time === since ? offset + body.length - 1 : readNow.size - 1,
        read: readNow
      }
      return { ...told, isDone: false }
    })
  }
}

/** By search, page after page, and at the end on from the last time seen: what is not enough. */
const byOffset = ({ ask, key, kind }: Options): Reader => {
  interface State {
    readonly copy: Copy
    readonly since: string | undefined
    readonly last: string | undefined
    readonly offset: number
  }
  const empty: State = { copy: new Map(), since: undefined, last: undefined, offset: 0 }
  let state = empty
  let saved = empty
  return {
    copy: () => state.copy,
    save: () => void (saved = state),
    restart: () => void (state = saved),
    page: Effect.fnUntraced(function* (limit) {
      const { offset, since } = state
      const filter = since === undefined || kind.time === undefined ? {} : { [kind.time.since]: since }
      const body = yield* search(ask, kind.resource, key, { limit, offset, ...filter, ...everything(kind) })
      const copy = new Map(state.copy)
      for (const record of body) copy.set(idOf(record), yield* json(record))
      const last = body.reduce<string | undefined>((one, record) => later(one, timeOf(kind, record)), state.last)
      const isDone = body.length < limit
      state = isDone ? { copy, since: last, last, offset: 0 } : { copy, since, last, offset: offset + limit }
      return {
        records: body.length,
        isDone,
        isCurrent: false,
        seen: `since ${since} offset ${offset}: ${seenOf(kind, body)}`
      }
    })
  }
}

/** A reader, with an empty copy. */
export const make = (manner: Manner, options: Options): Reader => {
  switch (manner) {
    case "changes":
    case "replica":
    case "both":
      return byChanges(options)
    case "overlap":
      return byOverlap(options)
    case "offset":
      return byOffset(options)
  }
}
