/** The statement that reads a page of a feed of changes. */
import type { Constructor, Fragment } from "effect/sql/Statement"
import type { Resource } from "../api/records/Resource.ts"
import { type Cursor, start } from "./Cursor.ts"
import { stateQuery } from "./Feed.ts"
import type { Query } from "./SearchQuery.ts"

/** The first row has the state of the feed as its `record`, and no `position`. The others are changes, in order. */
export interface ChangeRow {
  /** The record's JSON; null where it was deleted. */
  readonly record: string | null
  readonly id: string | null
  readonly position: number | null
  /** Whether a record that was deleted exists again. */
  readonly isBack: boolean | null
}

/**
 * The query of the changes after a cursor, and one more than `limit`, so that it is known whether there are more. Both
 * branches are read in the order of an index, and merged as they are read. Whether a record exists again is no `exists`:
 * Postgres might read all records of the organization to hash them.
 */
export const changesQuery = (
  sql: Constructor,
  owner: Fragment,
  resource: Resource,
  cursor: Cursor | undefined,
  limit: number
): Query<ChangeRow> => {
  const { id, position } = cursor ?? start
  const table = sql.literal(resource.table)
  const name = sql.literal(`'${resource.table}'`)
  const bounds = sql.literal(`limit ${limit + 1}`)
  // Hidden from the planner, so that one plan serves all cursors.
  const isAfter = sql`(t.change_position, t.id) > ((select ${position}::bigint), (select ${id}::text))
    and t.change_position < change_horizon()`
  return {
    isPlannedOnce: true,
    statement: sql<ChangeRow>`
      select s.json as record, null::text as id, null::float8 as position, null::boolean as "isBack"
      from (${stateQuery(sql, owner, resource, cursor)}) s (json)
      union all
      select p.record, p.id, p.change_position::float8, case when p.record is null then (
        select true from ${table} t where t.organization_id = ${owner} and t.id = p.id
      ) end
      from (
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
