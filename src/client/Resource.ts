/** The resources of the API: their interfaces, and how they are read, page after page. */
import { PracticeDataError, ResponseTooLargeError } from "./Errors.ts"
import type { ChangesPage, LivePage } from "./generated/types.ts"
import type { AllChangesOptions, AllOptions, ChangesOptions, RequestOptions } from "./Options.ts"
import { pause } from "./Transport.ts"
import { type Answer, type ApiRequest, type Read, readChanges, readList, readLive, readRecord } from "./Response.ts"

/** An operation of a resource. `search` comes with `all`. */
export type Verb = "search" | "get" | "changes"

export interface ResourceInfo {
  /** Its name in the API's paths. */
  readonly name: string
  readonly verbs: ReadonlyArray<Verb>
  /** The field that identifies a record. */
  readonly id: string
  /** The field that a search is ordered by, where records show it. */
  readonly time?: string
  /** The filter for records from such a time on. */
  readonly since?: string
  /** True if it is read live from the payment processor, by `starting_after`. */
  readonly live?: boolean
}

export interface AnyRecord {
  readonly [field: string]: unknown
}

/** The filters of a search without those that a walk of all its pages sets itself. */
export type Filters<Search> = Omit<Search, "limit" | "offset" | "starting_after">

/** A resource whose records can be searched. */
export interface Searchable<Item, Search> {
  /** One page: the records that satisfy every filter, by the time of their last change, then by `id`, ascending. */
  readonly search: (request?: Search, options?: RequestOptions) => Answer<Array<Item>>
  /**
   * Every record that satisfies the filters, page after page, in the same order. Records that change during the walk
   * may come again; no unchanged record is skipped. To keep a copy, use `changes`.
   *
   * @example
   * for await (const charge of client.charges.all({ status: "open" })) console.log(charge.id)
   */
  readonly all: (filters?: Filters<Search>, options?: AllOptions) => AsyncGenerator<Item, void, undefined>
}

/** A resource whose records can be searched, read by their id, and copied by their changes. */
export interface RecordResource<Item, Search> extends Searchable<Item, Search> {
  /** One record. Rejects with a `NotFoundError` if the organization has none with this id. */
  readonly get: (id: string, options?: RequestOptions) => Answer<Item>
  /**
   * The changes after a cursor, page after page; without one, all records. It ends when there are no more changes yet,
   * unless `follow` is set.
   *
   * Of each page, delete the ids in `removed` from the copy, insert or replace the records in `body` by their `id`, and
   * save the copy and `cursor` in one transaction. After a `CursorExpiredError` start again without a cursor, with an
   * empty copy.
   *
   * @example
   * for await (const page of client.charges.changes(cursor)) await save(page.removed, page.body, page.cursor)
   */
  readonly changes: (
    cursor?: string | null,
    options?: ChangesOptions
  ) => AsyncGenerator<ChangesPage<Item>, void, undefined>
}

/** A resource of which there is one record. */
export interface OwnResource<Item> {
  readonly get: (options?: RequestOptions) => Answer<Item>
}

/** Objects of the payment processor, read live from the account that is connected to one clinic. */
export interface LiveResource<Item, Search> {
  /** One page, newest first. The next one starts after the id of its last object. */
  readonly search: (request: Search, options?: RequestOptions) => Answer<LivePage<Item>>
  /** Every object, page after page, newest first. */
  readonly all: (filters: Filters<Search>, options?: AllOptions) => AsyncGenerator<Item, void, undefined>
}

/** A resource whose records can be searched, and read by one of several keys. */
export interface KeyedResource<Item, Search, Key> extends Searchable<Item, Search> {
  /** One record. Rejects with a `NotFoundError` if the organization has none with this key. */
  readonly get: (key: Key, options?: RequestOptions) => Answer<Item>
}

/** Sends a request to a path of the data API. */
export type Post = <A>(
  path: string,
  body: object,
  read: Read<A>,
  options?: RequestOptions,
  more?: Pick<ApiRequest<A>, "held" | "onHeaders">
) => Answer<A>

const largestPage = 1000
const largestLivePage = 100

/** The last records whose ids are kept, so that memory is bounded. */
const remembered = 10_000

/**
 * Every record that satisfies the filters, in their order. Each page starts at the time of the last record and overlaps
 * with the page before by one record: if that record is missing, records have moved, and the walk steps back until it
 * finds one that it knows. So it skips no unchanged record.
 *
 * Times are shown in milliseconds and kept in microseconds: within a millisecond the walk goes by `offset`, and it does
 * not replace a time that the caller gave until it has come to a later millisecond. Pages shrink after one that was too
 * large.
 */
async function* walk<Item>(
  post: Post,
  { id, name, since, time }: ResourceInfo,
  filters: object,
  options: AllOptions
): AsyncGenerator<Item, void, undefined> {
  let { pageSize = largestPage } = options
  if (pageSize < 2) throw new RangeError("pageSize must be 2 or more: pages overlap by one record")
  const timeOf = (record: AnyRecord) => (time === undefined ? "" : String(record[time]))
  const known = new Map<unknown, string>()
  const knows = (record: AnyRecord) => known.get(record[id]) === timeOf(record)
  /** Nothing, where a smaller page may help. */
  const smaller = (error: unknown) => {
    if (pageSize === 2 || !(error instanceof ResponseTooLargeError)) throw error
  }
  let reached: string | undefined
  let from: object = filters
  let offset = 0
  for (;;) {
    const request = { ...from, limit: pageSize, offset }
    const page = await post(`/${name}/search`, request, readList<Item & AnyRecord>("body"), options).catch(smaller)
    if (page === undefined) {
      pageSize = Math.max(2, Math.floor(pageSize / 10))
      continue
    }
    const [first] = page
    if (offset > 0 && (first === undefined || !knows(first))) {
      offset = Math.max(0, offset - Math.floor(pageSize / 2))
      continue
    }
    const last = page.at(-1)
    if (first === undefined || last === undefined) return
    const fresh: Array<Item> = page.filter((record) => !knows(record))
    yield* fresh
    if (page.length < pageSize) return
    reached ??= timeOf(first)
    const isLater = since !== undefined && timeOf(last) > reached
    if (isLater) {
      reached = timeOf(last)
      from = { ...filters, [since]: reached }
    }
    const passed = isLater ? page.filter((record) => timeOf(record) === reached).length : offset + page.length
    offset = passed - 1
    for (const record of page) known.set(record[id], timeOf(record))
    for (const oldest of Array.from(known.keys()).slice(0, -remembered)) known.delete(oldest)
  }
}

/** Every object of a clinic's account, newest first. */
async function* walkLive<Item>(
  post: Post,
  { name }: ResourceInfo,
  filters: object,
  options: AllOptions
): AsyncGenerator<Item, void, undefined> {
  const path = `/${name}/search`
  let after: string | undefined
  for (;;) {
    const request = { ...filters, limit: options.pageSize ?? largestLivePage, starting_after: after }
    const { data, has_more } = await post(path, request, readLive<Item & AnyRecord>(), options)
    const objects: Array<Item> = data
    yield* objects
    if (!has_more) return
    const id = data.at(-1)?.["id"]
    if (typeof id !== "string" || id === after) {
      throw new PracticeDataError(`${path} has more objects, but its page is empty or ends with the object before it`)
    }
    after = id
  }
}

/** In seconds. */
const longestWait = 20

/** In milliseconds. A service that is stopping does not hold responses back. */
const shortestRound = 1000

interface FeedPage {
  readonly body: ReadonlyArray<unknown>
  readonly removed?: ReadonlyArray<string>
  readonly cursor: string
  readonly has_more: boolean
}

export async function* changes<Page extends FeedPage>(
  post: Post,
  path: string,
  read: Read<Page>,
  from: string | null | undefined,
  { resources, ...options }: AllChangesOptions
): AsyncGenerator<Page, void, undefined> {
  const { follow = false, limit, signal } = options
  const wait = follow ? Math.max(1, options.wait ?? longestWait) : (options.wait ?? 0)
  const left = new AbortController()
  const requestOptions = { ...options, signal: signal ? AbortSignal.any([signal, left.signal]) : left.signal }
  /** Requests a page. The cursor of the next one arrives before it. */
  const request = (cursor: string | null | undefined) => {
    let announce: ((next: string | null) => void) | undefined
    const next = new Promise<string | null>((resolve) => (announce = resolve))
    const onHeaders = (headers: Headers) => announce?.(headers.get("x-changes-next"))
    const body = { cursor, limit, wait, resources }
    const page = post(path, body, read, requestOptions, { held: wait * 1000, onHeaders })
    const end = () => announce?.(null)
    void page.then(end, end)
    return { cursor, next, page }
  }
  try {
    for (let requested = request(from); ;) {
      const began = performance.now()
      const { cursor } = requested
      // The service reads it while this one arrives, is parsed and used.
      const ahead = requested.next.then((next) => (next ? request(next) : undefined))
      const page = await requested.page
      const isEmpty = page.body.length === 0 && (page.removed ?? []).length === 0
      if (page.cursor === cursor && (page.has_more || !isEmpty)) {
        throw new PracticeDataError(`${path} responds with changes, and a cursor that does not move`)
      }
      yield page
      if (!page.has_more) {
        if (!follow) return
        if (isEmpty) await pause(Math.max(0, began + shortestRound - performance.now()), signal)
      }
      const following = await ahead
      requested = following?.cursor === page.cursor ? following : request(page.cursor)
    }
  } finally {
    left.abort()
  }
}

/** All that a resource may be able to do. */
const operationsOf = <Item, Search extends object>(post: Post, info: ResourceInfo) => ({
  search: (request?: Search, options?: RequestOptions) =>
    post(`/${info.name}/search`, request ?? {}, readList<Item>(info.live === true ? "data" : "body"), options),
  all: (filters?: Filters<Search>, options: AllOptions = {}) =>
    (info.live === true ? walkLive<Item> : walk<Item>)(post, info, filters ?? {}, options),
  /** One record, by its id or by the fields of the request. */
  get: (key: string | object = {}, options?: RequestOptions) => {
    const request = typeof key === "string" ? { [info.id]: key } : key
    return post(`/${info.name}/get`, request, readRecord<Item>(info.id), options)
  },
  changes: (cursor?: string | null, options: ChangesOptions = {}) =>
    changes(post, `/${info.name}/changes`, readChanges<Item>(), cursor, options)
})

/** Makes a resource of each kind, which reads by `post`. */
export const makeWith = (post: Post) => ({
  own: <Item>(info: ResourceInfo): OwnResource<Item> => ({
    get: (options) => operationsOf<Item, object>(post, info).get({}, options)
  }),
  records: <Item, Search extends object>(info: ResourceInfo): RecordResource<Item, Search> => operationsOf(post, info),
  live: <Item, Search extends object>(info: ResourceInfo): LiveResource<Item, Search> => ({
    search: (request, options) => post(`/${info.name}/search`, request, readLive<Item>(), options),
    all: operationsOf<Item, Search>(post, info).all
  }),
  keyed: <Item, Search extends object, Key extends object>(info: ResourceInfo): KeyedResource<Item, Search, Key> => {
    const { all, get, search } = operationsOf<Item, Search>(post, info)
    return { all, get, search }
  }
})

export type Make = ReturnType<typeof makeWith>

/** A resource that was looked up by its name, with the methods of its verbs. */
export interface AnyResource extends ResourceInfo, Partial<ReturnType<typeof operationsOf<AnyRecord, object>>> {}

export const anyResource = (post: Post, info: ResourceInfo): AnyResource => {
  const { all, changes: walkChanges, get, search } = operationsOf<AnyRecord, object>(post, info)
  return {
    ...info,
    ...(info.verbs.includes("search") && { search, all }),
    ...(info.verbs.includes("get") && { get }),
    ...(info.verbs.includes("changes") && { changes: walkChanges })
  }
}
