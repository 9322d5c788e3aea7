/** A page of a feed of changes, as the stores put it together. */
import type { ChangeRow } from "./ChangesQuery.ts"
import type { Place } from "./Cursor.ts"
import type { Changes } from "./Repository.ts"

const placeOf = ({ id, position }: ChangeRow): Place => ({ id: id ?? "", position: position ?? 0 })

const isSame = (one: Place | undefined, another: Place | undefined) =>
  one !== undefined && one.position === another?.position && one.id === another.id

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
  const places = rows.map(placeOf)
  // A record that was deleted and inserted again by one transaction has two rows at one place, of which one is told.
  const length = isSame(places[limit], places[limit - 1]) ? limit + 1 : Math.min(limit, rows.length)
  const page = rows.slice(0, length)
  const body = page.flatMap(({ record }) => record ?? [])
  // One that the page has, and that was deleted before `existing` was looked up, is told by its own removal later.
  const told = new Set(page.map(({ id, record }) => (record === null ? null : id)))
  const removed = removedFrom(page).filter((id) => !existing.has(id) && !told.has(id))
  const cursor = cursorAt(places[length - 1])
  const hasMore = rows.length > limit
  return {
    json: `{"body":[${body.join(",")}],"removed":${JSON.stringify(removed)},"cursor":"${cursor}","has_more":${hasMore}}`,
    lag,
    cursor,
    last: places[length - 1],
    isEmpty: body.length === 0 && removed.length === 0 && !hasMore
  }
}
