/** Walks all pages of a search, while records may be changed. */
import { type Post, readBody } from "./Pages.ts"
import type { AllOptions, AnyRecord, ResourceInfo } from "./Resource.ts"

const largestPage = 1000

/** How many of the records that were read last are remembered, so that memory is bounded. */
const remembered = 10_000

const paging = new Set(["limit", "offset", "starting_after"])

/** A walk sets these itself. Whoever gives one means something else than the walk would do. */
export const refusePaging = (filters: object): void => {
  const given = Object.entries(filters).find(([name, value]) => paging.has(name) && value !== undefined)
  if (given !== undefined) {
    throw new TypeError(`all does not take ${given[0]}: it reads all pages, of pageSize records each`)
  }
}

/** Pages overlap by one record, so a page of one would never go on. */
const pageSizeOf = ({ pageSize = largestPage }: AllOptions) => {
  if (Number.isInteger(pageSize) && pageSize >= 2 && pageSize <= largestPage) return pageSize
  throw new RangeError(`pageSize must be an integer from 2 to ${largestPage}`)
}

/**
 * Every record that satisfies the filters, in their order. Each page is asked for from the time of the last record on,
 * and overlaps with the page before by one record: where that one is not there, records have moved, and the walk steps
 * back until it finds one that it knows. So it misses no record that stays as it is.
 *
 * Times are shown in milliseconds and kept in microseconds: within a millisecond the walk goes by `offset`, and it does
 * not replace a time that the caller gave until it has come to a later millisecond.
 */
export async function* walk<Item>(
  post: Post,
  { id, name, since, time }: ResourceInfo,
  filters: object,
  options: AllOptions
): AsyncGenerator<Item, void, undefined> {
  refusePaging(filters)
  const pageSize = pageSizeOf(options)
  const idOf = (record: AnyRecord) => String(record[id])
  const timeOf = (record: AnyRecord) => (time === undefined ? "" : String(record[time]))
  const known = new Map<string, string>()
  const knows = (record: AnyRecord) => known.get(idOf(record)) === timeOf(record)
  let reached: string | undefined
  let from: object = filters
  let offset = 0
  for (;;) {
    const request = { ...from, limit: pageSize, offset }
    const page = await post(`/${name}/search`, request, readBody<Item & AnyRecord>, options)
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
      known.clear()
    }
    for (const record of page) if (!isLater || timeOf(record) === reached) known.set(idOf(record), timeOf(record))
    offset = isLater ? known.size - 1 : offset + page.length - 1
    for (const oldest of known.keys()) {
      if (known.size <= remembered) break
      known.delete(oldest)
    }
  }
}
