/** Makes the resources of the client. */
import { changes } from "./Changes.ts"
import { walkLive } from "./Live.ts"
import type { RequestOptions } from "./Options.ts"
import { type Post, readBody, readLive, readRecord } from "./Pages.ts"
import type {
  AnyRecord,
  AnyResource,
  ChangesOptions,
  LiveResource,
  Make,
  ResourceInfo,
  Searchable,
  Verb
} from "./Resource.ts"
import { walk } from "./Walk.ts"

const searching = <Item, Search extends object>(post: Post, info: ResourceInfo): Searchable<Item, Search> => ({
  search: (request, options) => post(`/${info.name}/search`, request ?? {}, readBody<Item>, options),
  all: (filters, options = {}) => walk<Item>(post, info, filters ?? {}, options)
})

const live = <Item, Search extends object>(post: Post, { name }: ResourceInfo): LiveResource<Item, Search> => ({
  search: (request, options) => post(`/${name}/search`, request, readLive<Item>, options),
  all: (filters, options = {}) => walkLive<Item>(post, name, filters, options)
})

const getting =
  <Item>(post: Post, { id, name }: ResourceInfo) =>
  (request: object, options?: RequestOptions) =>
    post(`/${name}/get`, request, readRecord<Item>(id), options)

const changing =
  <Item>(post: Post, { name }: ResourceInfo) =>
  (cursor?: string | null, options: ChangesOptions = {}) =>
    changes<Item>(post, name, cursor, options)

/** Makes resources that are asked by `post`. */
export const makeWith = (post: Post): Make => ({
  own: <Item>(info: ResourceInfo) => {
    const get = getting<Item>(post, info)
    return { get: (options) => get({}, options) }
  },
  records: <Item, Search extends object>(info: ResourceInfo) => {
    const get = getting<Item>(post, info)
    return {
      ...searching<Item, Search>(post, info),
      get: (id, options) => get({ id }, options),
      changes: changing<Item>(post, info)
    }
  },
  live: (info) => live(post, info),
  keyed: <Item, Search extends object>(info: ResourceInfo) => ({
    ...searching<Item, Search>(post, info),
    get: getting<Item>(post, info)
  })
})

const searchingAny = (post: Post, info: ResourceInfo): Pick<AnyResource, "all" | "search"> => {
  if (info.live !== true) return searching<AnyRecord, object>(post, info)
  const { all, search } = live<AnyRecord, object>(post, info)
  return {
    search: (request = {}, options) => search(request, options).then(({ data }) => data),
    all: (filters = {}, options) => all(filters, options)
  }
}

/** Makes any resource. */
export const makeAny = (post: Post, info: ResourceInfo): AnyResource => {
  const has = (verb: Verb) => info.verbs.includes(verb)
  const get = getting<AnyRecord>(post, info)
  return {
    ...info,
    ...(has("search") && searchingAny(post, info)),
    ...(has("get") && {
      get: (key: string | object = {}, options) => get(typeof key === "string" ? { [info.id]: key } : key, options)
    }),
    ...(has("changes") && { changes: changing<AnyRecord>(post, info) })
  }
}
