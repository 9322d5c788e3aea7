/** Reads by changes: applies each answer, and keeps its cursor. */
import { Effect } from "effect"
import { type Copy, idOf, type Options, type Reader, textOf } from "./Reader.ts"
import type { Kind } from "./Room.ts"
import { changes, type Fields, json, Refused } from "./Service.ts"

interface State {
  readonly copy: Copy
  /** The highest version of each record so far, also of those that were removed. */
  readonly versions: ReadonlyMap<string, number>
  readonly cursor: string | undefined
}

const empty: State = { copy: new Map(), versions: new Map(), cursor: undefined }

const versionOf = (kind: Kind, record: Fields) => Number(/^v(\d+)$/.exec(String(record[kind.label]))?.[1] ?? Number.NaN)

/** A reader, with an empty copy. */
export const make = ({ ask, key, kind }: Options): Reader => {
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
        return { isDone: false, isCurrent: false, seen: "410" }
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
        isDone: !hasMore,
        isCurrent: !hasMore && lag === 0,
        seen: `${textOf(kind, body)} removed ${removed.join(" ")}; ${hasMore ? "more" : "no more"}, lag ${lag}`
      }
    })
  }
}
