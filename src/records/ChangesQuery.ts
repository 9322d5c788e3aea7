/** The statement that reads a page of a feed of changes. */
import type { Constructor, Fragment } from "effect/sql/Statement"
import type { Resource } from "../api/records/Resource.ts"
import { type Cursor, start } from "./Cursor.ts"
import { bytesOf } from "../database/TextBytes.ts"
import type { Query } from "../keys/OrganizationReads.ts"
import type { Json } from "./Json.ts"

/** The first row has the state of the feed as its `removal`, and no `position`. The others are changes, in order. */
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

const maximumBigint = "9223372036854775807"

/**
 * The values of `changesQuery` for a cursor: the place that records come after, and the place that removals come after.
 * Without a cursor, all records and no removals.
 */
export const placesOf = (cursor: Cursor | undefined): ReadonlyArray<string> => {
  if (cursor === undefined) return [String(start.position), start.id, maximumBigint, ""]
  const { floor, id, position } = cursor
  const place = [String(position), id]
  return [...place, ...(floor > position ? [String(floor), ""] : place)]
}

/**
 * The query of the changes after a cursor, and one more than `limit`, so that it is known whether there are more. Both
 * branches are read in the order of an index, and merged as they are read.
 *
 * @param places the places that they come after, as `placesOf` has them
 * @param first the SQL of the first row
 */
export const changesQuery = (
  sql: Constructor,
  owner: Fragment,
  resource: Resource,
  [position = "", id = "", removalPosition = "", removalId = ""]: ReadonlyArray<string>,
  limit: number,
  first: Fragment
): Query<ChangeRow> => {
  const table = sql.literal(resource.table)
  const name = sql.literal(`'${resource.table}'`)
  const bounds = sql.literal(`limit ${limit + 1}`)
  // Hidden from the planner, so that one plan serves all cursors.
  const isAfter = (place: string, of: string) =>
    sql`(t.change_position, t.id) > ((select ${place}::bigint), (select ${of}::text)) and t.change_position < change_horizon()`
  // In the snapshot of the page: another server, or a later moment, may have another answer. Not `exists`, for which a plan
  // may read all records of the owner.
  const existing = sql`(select '+' from ${table} t where t.organization_id = ${owner} and t.id = p.id)`
  return {
    isPlannedOnce: true,
    columns: ["record", "removal", "position"],
    statement: sql<ChangeRow>`
      select null::bpchar as record, s.text as removal, null::float8 as position
      from (${first}) s (text)
      union all
      select ${sql.literal(bytesOf("p.record"))}, case when p.record is null then coalesce(${existing}, '-') || p.id end,
        p.change_position::float8
      from (
        (
          select t.record, t.id, t.change_position from ${table} t
          where t.organization_id = ${owner} and ${isAfter(position, id)} order by t.change_position, t.id ${bounds}
        )
        union all
        (
          select null, t.id, t.change_position from removals t
          where t.organization_id = ${owner} and t.table_name = ${name} and ${isAfter(removalPosition, removalId)}
          order by t.change_position, t.id ${bounds}
        )
        order by change_position, id ${bounds}
      ) p`
  }
}
