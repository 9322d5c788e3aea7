/**
 * A reader of the changes of one resource or of several: it keeps a copy of the records of a room, a page at a time, and can
 * resume from what it saved last, as after a kill.
 */
import { Effect } from "effect"
import { json } from "../../../test/support/Client.ts"
import { type Kind, ledgers } from "./Room.ts"
import { type Ask, changes, type Item, Refused } from "./Service.ts"

/** A copy: the JSON of each record, by resource and id. */
export type Copy = ReadonlyMap<string, string>

interface Options {
  readonly kinds: ReadonlyArray<Kind>
  readonly key: string
  readonly ask: Ask
}

interface State {
  readonly copy: Copy
  /** The highest version of each record so far, also of those that were removed. */
  readonly versions: ReadonlyMap<string, number>
  readonly cursor: string | undefined
}

const empty: State = { copy: new Map(), versions: new Map(), cursor: undefined }

const versionOf = (kinds: ReadonlyArray<Kind>, resource: string, record: Readonly<Record<string, unknown>>) => {
  const label = kinds.find((kind) => kind.resource === resource)?.label ?? ""
  return Number(/^v(\d+)$/.exec(String(record[label]))?.[1] ?? Number.NaN)
}

/** The entries of some resources. */
const entriesOf = <A>(map: ReadonlyMap<string, A>, isIncluded: (resource: string) => boolean) =>
  new Map([...map].filter(([key]) => isIncluded(key.split(" ")[0] ?? "")))

const [first, second] = ledgers

/** The keys of the records that are not alike in both ledgers. */
const torn = ({ copy, versions }: State) => {
  const held = (key: string) => (copy.has(key) ? versions.get(key) : undefined)
  return [...copy.keys()].filter((key) => {
    const [resource = "", id = ""] = key.split(" ")
    const other = resource === first.resource ? second : resource === second.resource ? first : undefined
    return other !== undefined && held(`${other.resource} ${id}`) !== held(key)
  })
}

/** A reader, with an empty copy. */
export const make = ({ ask, key, kinds: given }: Options) => {
  let kinds = given
  let state = empty
  let saved = empty
  return {
    copy: () => state.copy,
    kinds: () => kinds,
    /** Reads these from now on, also when it is started again. */
    choose: (chosen: typeof kinds) => void (kinds = chosen),
    save: () => void (saved = state),
    restart: () => void (state = saved),
    /** Reads a page, which waits so many seconds for something new. */
    page: Effect.fnUntraced(function* (limit: number, wait: number) {
      const { cursor } = state
      const asked = kinds
      const resources = asked.map(({ resource }) => resource)
      const request = { limit, ...(wait > 0 ? { wait } : {}), ...(cursor === undefined ? {} : { cursor }) }
      const page = yield* changes(ask, key, { ...request, resources })
      if (page === undefined) {
        state = empty
        return { isDone: false, isCurrent: false, isGone: true, seen: "410" }
      }
      const { body: items, has_more: hasMore, is_consistent: isConsistent } = page
      if (items.filter((item) => !("reset" in item)).length > limit) {
        return yield* new Refused({ message: `${items.length} of at most ${limit}` })
      }
      if (hasMore && page.cursor === cursor) {
        return yield* new Refused({ message: "There is more, and the cursor stays" })
      }
      // A resource that was left out begins anew when it joins again.
      let copy = entriesOf(state.copy, (resource) => resources.includes(resource))
      let versions = new Map(state.versions)
      const removed = new Set<string>()
      const words: Array<string> = []
      const apply = Effect.fnUntraced(function* (item: Item) {
        const { resource } = item
        if ("reset" in item) {
          copy = entriesOf(copy, (other) => other !== resource)
          versions = entriesOf(versions, (other) => other !== resource)
          return words.push(`${resource} reset`)
        }
        const at = `${resource} ${"record" in item ? String(item.record["id"]) : item.removed}`
        if ("removed" in item) {
          copy.delete(at)
          removed.add(at)
          return words.push(`-${at}`)
        }
        if (removed.has(at)) return yield* new Refused({ message: `${at} is there and removed` })
        const version = versionOf(asked, resource, item.record)
        if (!(version >= (versions.get(at) ?? 0))) {
          return yield* new Refused({ message: `${at} came as v${version} after v${versions.get(at)}` })
        }
        versions.set(at, version)
        copy.set(at, json(item.record))
        return words.push(`${at}=v${version}`)
      })
      for (const item of items) yield* apply(item)
      state = { copy, versions, cursor: page.cursor }
      const unlike = isConsistent ? torn(state) : []
      if (unlike.length > 0) return yield* new Refused({ message: `Consistent, but torn: ${unlike.join()}` })
      const ends = `${hasMore ? "more" : "no more"}${isConsistent ? ", consistent" : ""}`
      return {
        isDone: !hasMore,
        /** True if the copy is the last committed state, by the service's own word. */
        isCurrent: isConsistent,
        isGone: false,
        seen: `${words.join(" ")}; ${ends}`
      }
    })
  }
}

export type Reader = ReturnType<typeof make>
