/**
 * Reads by search alone, as the documentation says: round after round, each from `margin` before the last time seen or before
 * the round before began, with pages that overlap by one record inside a millisecond.
 */
import { DateTime, Effect } from "effect"
import { type Copy, idOf, type Options, type Reader, textOf } from "./Reader.ts"
import { before, pageOf, timeOf } from "./search.ts"
import { json } from "./Service.ts"

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

const earlier = (one: string, another: string) => (another < one ? another : one)

/** A reader, with an empty copy. */
export const make = (options: Options): Reader => {
  const { kind, margin } = options
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
      const body = yield* pageOf(options, { limit, offset, since })
      const copy = new Map(state.copy)
      for (const record of body) copy.set(idOf(record), yield* json(record))
      state = { copy, start: state.start }
      const told = {
        isCurrent: false,
        seen: `since ${since} offset ${offset}: ${textOf(kind, body)}`
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
