/** A page of a feed of changes, as the stores put it together. */
import type { ChangeRow } from "./ChangesQuery.ts"
import type { Place } from "./Cursor.ts"
import * as Json from "./Json.ts"
import type { Changes } from "./Repository.ts"

const idIn = /^\{"id":("(?:[^"\\]|\\.)*")/

const idOf = ({ id, record }: ChangeRow): string =>
  id ?? JSON.parse(idIn.exec(record === null ? "" : Json.toText(record))?.[1] ?? '""')

const placeOf = (row: ChangeRow): Place => ({ id: idOf(row), position: row.position ?? 0 })

const isSame = (one: ChangeRow | undefined, another: ChangeRow | undefined) =>
  one !== undefined && one.position === another?.position && idOf(one) === idOf(another)

/** The ids of what was deleted. */
export const removedFrom = (rows: ReadonlyArray<ChangeRow>) =>
  rows.flatMap(({ id, record }) => (record === null && id !== null ? [id] : []))

/**
 * A page of at most `limit` changes.
 *
 * @param rows the changes in order, one more than the limit if there are more
 * @param existing of the ids that were removed, those of which there is a record again: it has a change of its own
 * @param cursorAt the text of the cursor after the last change of the page, or where there is none
 */
export const pageOf = (
  rows: ReadonlyArray<ChangeRow>,
  existing: ReadonlySet<string>,
  limit: number,
  lag: number,
  cursorAt: (last: Place | undefined) => string
): Changes => {
  // A record that was deleted and inserted again by one transaction has two rows at one place, of which one is told.
  const length = isSame(rows[limit], rows[limit - 1]) ? limit + 1 : Math.min(limit, rows.length)
  const page = rows.slice(0, length)
  const body = page.flatMap(({ record }) => record ?? [])
  const removed = removedFrom(page)
  // One that the page has, and that was deleted before `existing` was looked up, is told by its own removal later.
  const told = new Set(removed.length === 0 ? [] : page.flatMap((row) => (row.record === null ? [] : idOf(row))))
  const gone = removed.filter((id) => !existing.has(id) && !told.has(id))
  const final = page.at(-1)
  const last = final === undefined ? undefined : placeOf(final)
  const cursor = cursorAt(last)
  const hasMore = rows.length > limit
  return {
    json: Json.list(
      '{"body":[',
      body,
      `],"removed":${JSON.stringify(gone)},"cursor":"${cursor}","has_more":${hasMore}}`
    ),
    lag,
    cursor,
    rows: body.length + gone.length,
    last,
    isEmpty: body.length === 0 && gone.length === 0 && !hasMore
  }
}
