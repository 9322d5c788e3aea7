/** A page of a feed of changes, as the stores put it together. */
import type { ChangeRow } from "./ChangesQuery.ts"
import type { Place } from "./Cursor.ts"
import * as Json from "./Json.ts"
import type { Changes } from "./Repository.ts"

const idIn = /^\{"id":("(?:[^"\\]|\\.)*")/

const idOf = ({ removal, record }: ChangeRow): string =>
  removal?.slice(1) ?? JSON.parse(idIn.exec(record === null ? "" : Json.toText(record))?.[1] ?? '""')

const placeOf = (row: ChangeRow): Place => ({ id: idOf(row), position: row.position ?? 0 })

const isSame = (one: ChangeRow | undefined, another: ChangeRow | undefined) =>
  one !== undefined && one.position === another?.position && idOf(one) === idOf(another)

/** The changes of a page. */
export interface Page {
  readonly body: ReadonlyArray<Json.Json>
  readonly removed: ReadonlyArray<string>
  readonly hasMore: boolean
  /** The place of its last change. */
  readonly last: Place | undefined
}

export const empty: Page = { body: [], removed: [], hasMore: false, last: undefined }

/**
 * A page of at most `limit` changes.
 *
 * @param rows the changes in order, one more than the limit if there are more
 */
export const pageOf = (rows: ReadonlyArray<ChangeRow>, limit: number): Page => {
  // A record that was deleted and inserted again by one transaction has two rows at one place, of which one is told.
  const length = isSame(rows[limit], rows[limit - 1]) ? limit + 1 : Math.min(limit, rows.length)
  const page = rows.slice(0, length)
  const final = page.at(-1)
  return {
    body: page.flatMap(({ record }) => record ?? []),
    removed: page.flatMap((row) => (row.removal?.startsWith("-") === true ? [idOf(row)] : [])),
    hasMore: rows.length > limit,
    last: final === undefined ? undefined : placeOf(final)
  }
}

/** The response of a page. */
export const responseOf = (
  { body, hasMore, removed }: Page,
  { cursor, ...state }: Pick<Changes, "cursor" | "isComplete" | "lag">
): Changes => ({
  json: Json.list(
    '{"body":[',
    body,
    `],"removed":${JSON.stringify(removed)},"cursor":"${cursor}","has_more":${hasMore}}`
  ),
  cursor,
  ...state,
  rows: body.length + removed.length,
  isEmpty: body.length === 0 && removed.length === 0 && !hasMore
})
