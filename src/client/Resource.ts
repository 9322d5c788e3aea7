/** The resources of the API: their interfaces, and how they are read. */
import type { ChangesPage, LivePage } from "./generated/types.ts"
import type { AllOptions, ChangesOptions, RequestOptions } from "./Options.ts"
import { type AnyRecord, changes, type Post, type ResourceInfo, walk, walkLive } from "./Pages.ts"
import { type Answer, readBody, readChanges, readLive, readRecord } from "./Response.ts"

export type { ResourceInfo }

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

/** A resource that was looked up by its name, with the methods of its verbs. */
export interface AnyResource extends ResourceInfo {
  /** One page. */
  readonly search?: (request?: object, options?: RequestOptions) => Promise<Array<AnyRecord>>
  /** All pages. */
  readonly all?: (filters?: object, options?: AllOptions) => AsyncGenerator<AnyRecord, void, undefined>
  /** One record, by its id or by the fields of the request. */
  readonly get?: (key?: string | object, options?: RequestOptions) => Answer<AnyRecord>
  /** The pages of changes after a cursor. */
  readonly changes?: (
    cursor?: string | null,
    options?: ChangesOptions
  ) => AsyncGenerator<ChangesPage<AnyRecord>, void, undefined>
}

/** All that a resource may be able to do that is not read live. */
const operationsOf = <Item, Search extends object>(post: Post, info: ResourceInfo) => ({
  search: (request?: Search, options?: RequestOptions) =>
    post(`/${info.name}/search`, request ?? {}, readBody<Item>(), options),
  all: (filters?: Filters<Search>, options: AllOptions = {}) => walk<Item>(post, info, filters ?? {}, options),
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
    all: (filters, options = {}) => walkLive<Item>(post, info, filters, options)
  }),
  keyed: <Item, Search extends object, Key extends object>(info: ResourceInfo): KeyedResource<Item, Search, Key> => {
    const { all, get, search } = operationsOf<Item, Search>(post, info)
    return { all, get, search }
  }
})

export type Make = ReturnType<typeof makeWith>

/** A resource of any kind, with the methods of its verbs. */
export const anyResource = (post: Post, info: ResourceInfo): AnyResource => {
  if (info.live === true) {
    const { all, search } = makeWith(post).live<AnyRecord, object>(info)
    return {
      ...info,
      search: (request = {}, options) => search(request, options).then(({ data }) => data),
      all: (filters = {}, options) => all(filters, options)
    }
  }
  const { all, changes: walkChanges, get, search } = operationsOf<AnyRecord, object>(post, info)
  return {
    ...info,
    ...(info.verbs.includes("search") && { search, all }),
    ...(info.verbs.includes("get") && { get }),
    ...(info.verbs.includes("changes") && { changes: walkChanges })
  }
}
