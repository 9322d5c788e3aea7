/** The statement that reads a page of a feed of changes. */
import type { Constructor, Fragment } from "effect/sql/Statement"
import type { Resource } from "../api/records/Resource.ts"
import { type Place, start } from "./Cursor.ts"
import { bytesOf } from "../database/TextBytes.ts"
import type { Json } from "./Json.ts"
import type { Query } from "./SearchQuery.ts"

/** The first row has what was asked of the feed itself as its `id`, and no `position`. The others are changes, in order. */
export interface ChangeRow {
  /** The record's JSON, which begins with its id; null where it was deleted. */
  readonly record: Json | null
  /** The id of a record that was deleted. That of any other would cost a page of a thousand a tenth more. */
  readonly id: string | null
  readonly position: number | null
}

/** The place in the order that a cursor stands for, as values of `changesQuery`: without one, before all changes. */
export const placeOf = (cursor: Place | undefined): ReadonlyArray<string> => {
  const { id, position } = cursor ?? start
  return [String(position), id]
}

/**
 * The query of the changes after a cursor, and one more than `limit`, so that it is known whether there are more. Both
 * branches are read in the order of an index, and merged as they are read.
 *
 * @param after the position and the id that they come after, as `placeOf` has them
 * @param first the SQL of the first row
 */
export const changesQuery = (
  sql: Constructor,
  owner: Fragment,
  resource: Resource,
  [position = "", id = ""]: ReadonlyArray<string>,
  limit: number,
  first: Fragment
): Query<ChangeRow> => {
  const table = sql.literal(resource.table)
  const name = sql.literal(`'${resource.table}'`)
  const bounds = sql.literal(`limit ${limit + 1}`)
  // Hidden from the planner, so that one plan serves all cursors.
  const isAfter = sql`(t.change_position, t.id) > ((select ${position}::bigint), (select ${id}::text))
    and t.change_position < change_horizon()`
  return {
    isPlannedOnce: true,
    columns: ["record", "id", "position"],
    statement: sql<ChangeRow>`
      select null::bpchar as record, s.text as id, null::float8 as position
      from (${first}) s (text)
      union all
      select ${sql.literal(bytesOf("p.record"))}, case when p.record is null then p.id end, p.change_position::float8 from (
        (
          select t.record, t.id, t.change_position from ${table} t
          where t.organization_id = ${owner} and ${isAfter} order by t.change_position, t.id ${bounds}
        )
        union all
        (
          select null, t.id, t.change_position from removals t
          where t.organization_id = ${owner} and t.table_name = ${name} and ${isAfter}
          order by t.change_position, t.id ${bounds}
        )
        order by change_position, id ${bounds}
      ) p`
  }
}

/** The query of those of the ids of which there is a record below a horizon. */
export const existingQuery = (
  sql: Constructor,
  owner: Fragment,
  { table }: Resource,
  ids: ReadonlyArray<string>,
  horizon: number
): Query<{ readonly id: string | null }> => ({
  isPlannedOnce: true,
  columns: ["id"],
  statement: sql<{ id: string }>`
    select g.id from unnest(${ids}::text[]) g (id)
    cross join lateral (
      select from ${sql.literal(table)} t where t.organization_id = ${owner} and t.id = g.id and t.change_position < ${horizon}::bigint
      offset 0
    ) t`
})
