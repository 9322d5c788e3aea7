/** What readers by search share. */
import { DateTime } from "effect"
import type { Options } from "./Reader.ts"
import type { Kind } from "./Room.ts"
import { type Fields, search } from "./Service.ts"

/** The time of a record, by which it is ordered, where it is shown. */
export const timeOf = ({ time }: Kind, record: Fields) => (time === undefined ? undefined : String(record[time.column]))

/** So many milliseconds before a time. */
export const before = (time: string, millis: number) =>
  DateTime.formatIso(DateTime.subtract(DateTime.makeUnsafe(time), { milliseconds: millis }))

/** Reads a page, deleted records included. */
export const pageOf = (
  { ask, key, kind }: Options,
  page: { readonly limit: number; readonly offset: number; readonly since: string | undefined }
) => {
  const { limit, offset, since } = page
  return search(ask, kind.resource, key, {
    limit,
    offset,
    ...(since === undefined || kind.time === undefined ? {} : { [kind.time.since]: since }),
    ...(kind.isMarked === true ? { include_deleted: true } : {})
  })
}
