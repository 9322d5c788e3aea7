/** The interfaces of resources. */
import type { ChangesPage, LivePage } from "./generated/types.ts"
import type { RequestOptions } from "./Options.ts"
import type { Answer } from "./Response.ts"

/** An operation of a resource. `search` comes with `all`. */
export type Verb = "search" | "get" | "changes"

/** A resource of the API. */
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

/** Options of a walk of all pages. */
export interface AllOptions extends RequestOptions {
  /** The records of each page, from 2 to 1000, by default 1000; of the payment processor at most 100, the default. */
  readonly pageSize?: number | undefined
}

/** Options of changes. */
export interface ChangesOptions extends RequestOptions {
  /** The most changes of a page, records and removals together; by default 1000. */
  readonly limit?: number | undefined
  /** The seconds, at most 20, for which the service waits for a change; by default 0, with `follow` 20. */
  readonly wait?: number | undefined
  /** Continues when there are no more changes yet, until the loop is left or the signal is aborted. */
  readonly follow?: boolean | undefined
}

/** Options of the changes of all resources. */
export interface AllChangesOptions extends ChangesOptions {
  /** The names of resources, as in the API's paths; by default all. One that is new to the cursor begins with a reset. */
  readonly resources?: ReadonlyArray<string> | undefined
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

/** A record of any resource. */
export interface AnyRecord {
  readonly [field: string]: unknown
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

/** Makes a resource of each kind. */
export interface Make {
  readonly own: <Item>(info: ResourceInfo) => OwnResource<Item>
  readonly records: <Item, Search extends object>(info: ResourceInfo) => RecordResource<Item, Search>
  readonly live: <Item, Search extends object>(info: ResourceInfo) => LiveResource<Item, Search>
  readonly keyed: <Item, Search extends object, Key extends object>(
    info: ResourceInfo
  ) => KeyedResource<Item, Search, Key>
}
