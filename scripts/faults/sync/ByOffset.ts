/** Reads by search, page after page, and at the end on from the last time seen: what is not enough. */
import { Effect } from "effect"
import { type Copy, idOf, type Options, type Reader, textOf } from "./Reader.ts"
import { pageOf, timeOf } from "./search.ts"
import { json } from "./Service.ts"

interface State {
  readonly copy: Copy
  readonly since: string | undefined
  readonly last: string | undefined
  readonly offset: number
}

const empty: State = { copy: new Map(), since: undefined, last: undefined, offset: 0 }

const later = (one: string | undefined, another: string | undefined) =>
  one === undefined || (another !== undefined && another > one) ? another : one

/** A reader, with an empty copy. */
export const make = (options: Options): Reader => {
  const { kind } = options
  let state = empty
  let saved = empty
  return {
    copy: () => state.copy,
    save: () => void (saved = state),
    restart: () => void (state = saved),
    page: Effect.fnUntraced(function* (limit) {
      const { offset, since } = state
      const body = yield* pageOf(options, { limit, offset, since })
      const copy = new Map(state.copy)
      for (const record of body) copy.set(idOf(record), yield* json(record))
      const last = body.reduce<string | undefined>((one, record) => later(one, timeOf(kind, record)), state.last)
      const isDone = body.length < limit
      state = isDone ? { copy, since: last, last, offset: 0 } : { copy, since, last, offset: offset + limit }
      return {
        isDone,
        isCurrent: false,
        seen: `since ${since} offset ${offset}: ${textOf(kind, body)}`
      }
    })
  }
}
