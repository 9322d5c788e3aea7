/** The JSON of pages, as the bytes that go to a client: stored records are concatenated and never parsed. */
import { Buffer } from "node:buffer"
import { Effect } from "effect"
import { note } from "../observability/RequestFacts.ts"
import type { Place } from "./Cursor.ts"
import type { Changes } from "./Repository.ts"

/** JSON in UTF-8. */
export type Json = Uint8Array

const comma = ",".charCodeAt(0)

export const fromText = (text: string): Json => Buffer.from(text)

export const toText = ({ buffer, byteLength, byteOffset }: Json): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString()

/** Concatenates values, with a comma between two of them. */
const concat = (before: string, values: ReadonlyArray<Json>, after: string): Json => {
  let size = Buffer.byteLength(before) + Buffer.byteLength(after) + Math.max(0, values.length - 1)
  for (const value of values) size += value.length
  const bytes = Buffer.allocUnsafe(size)
  let end = bytes.write(before)
  let isFirst = true
  for (const value of values) {
    if (!isFirst) bytes[end++] = comma
    isFirst = false
    bytes.set(value, end)
    end += value.length
  }
  bytes.write(after, end)
  return bytes
}

/** The page of a search: `{"body":[...]}`. */
export const searchPage = (rows: ReadonlyArray<{ readonly record: Json | null }>): Effect.Effect<Json> => {
  const records: Array<Json> = []
  for (const { record } of rows) if (record !== null) records.push(record)
  return Effect.as(note({ rows: rows.length }), concat('{"body":[', records, "]}"))
}

/** A row of a feed, in the order of the changes. */
export interface ChangeRow {
  /** The record's JSON, which begins with its id; null for a removal. */
  readonly record: Json | null
  /**
   * The id of a removal, after `-`; after `+` where the snapshot has a record of that id again, which has a change of its
   * own. Null for a record: its id would cost a page of a thousand a tenth more.
   */
  readonly removal: string | null
  readonly position: number | null
}

const leadingId = /^\{"id":("(?:[^"\\]|\\.)*")/

const idOf = ({ removal, record }: ChangeRow): string =>
  removal?.slice(1) ?? JSON.parse(leadingId.exec(record === null ? "" : toText(record))?.[1] ?? '""')

const isSame = (one: ChangeRow | undefined, another: ChangeRow | undefined) =>
  one !== undefined && one.position === another?.position && idOf(one) === idOf(another)

export interface ChangesPage {
  readonly body: ReadonlyArray<Json>
  readonly removed: ReadonlyArray<string>
  readonly hasMore: boolean
  readonly last: Place | undefined
}

/**
 * A page of at most `limit` changes.
 *
 * @param rows the changes in order, one more than the limit if there are more
 */
export const changesPage = (rows: ReadonlyArray<ChangeRow>, limit: number): ChangesPage => {
  // A record that one transaction deletes and inserts again has two rows at one place: both belong to one page.
  const length = isSame(rows[limit], rows[limit - 1]) ? limit + 1 : Math.min(limit, rows.length)
  const page = rows.slice(0, length)
  const final = page.at(-1)
  return {
    body: page.flatMap(({ record }) => record ?? []),
    removed: page.flatMap((row) => (row.removal?.startsWith("-") === true ? [idOf(row)] : [])),
    hasMore: rows.length > limit,
    last: final && { id: idOf(final), position: final.position ?? 0 }
  }
}

export const changesResponse = (
  { body, hasMore, removed }: ChangesPage,
  { cursor, ...state }: Pick<Changes, "cursor" | "isComplete" | "lag">
): Changes => ({
  json: concat('{"body":[', body, `],"removed":${JSON.stringify(removed)},"cursor":"${cursor}","has_more":${hasMore}}`),
  cursor,
  ...state,
  rows: body.length + removed.length,
  isEmpty: body.length === 0 && removed.length === 0 && !hasMore
})
