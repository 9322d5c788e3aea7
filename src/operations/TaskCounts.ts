/** Counts of deletion tasks: the open and dead ones, and those that have ended. */
import { Effect, Schema } from "effect"
import { decodeRows, isoTime } from "../database/Columns.ts"
import type { Database } from "../database/Database.ts"

/** Tasks of a state beyond this are not counted. */
export const mostCounted = 10_000

/** The open and dead tasks, the first of each. Times are ISO 8601 in UTC. */
const Counts = Schema.Struct({
  scheduled: Schema.Int,
  running: Schema.Int,
  dead: Schema.Int,
  /** The earliest time at which a task is due. */
  oldest_due_at: Schema.NullOr(Schema.String),
  /** The first deletion or undoing for which open transactions may bring rows. */
  unsettled_since: Schema.NullOr(Schema.String),
  now: Schema.String
})
export type Counts = typeof Counts.Type

const Ended = Schema.Struct({ start: Schema.Finite, completed: Schema.Int, cancelled: Schema.Int, dead: Schema.Int })

/** Counts the tasks that ended in each hour of the last day. `start`: milliseconds since 1970. */
export const endedByHour = (sql: Database) =>
  decodeRows(Ended)(sql`
    select extract(epoch from date_trunc('hour', finished_at))::float8 * 1000 as start,
      (count(*) filter (where state = 'completed'))::integer as completed,
      (count(*) filter (where state = 'cancelled'))::integer as cancelled,
      (count(*) filter (where state = 'dead'))::integer as dead
    from deletion_tasks
    where (state = 'dead' or state in ('completed', 'cancelled') and payload is not null)
      and state in ('completed', 'cancelled', 'dead') and finished_at >= date_trunc('hour', now()) - interval '23 hours'
    group by 1 order by 1`)

const mostRows = `limit ${mostCounted + 1}`

/** Counts tasks in the order of two partial indexes. */
export const counts = (sql: Database) =>
  Effect.flatMap(
    decodeRows(Counts)(
      sql.unsafe(`
        with open as (
          select state, due_at from deletion_tasks where state in ('scheduled', 'running') order by due_at ${mostRows}
        ),
        dead as (
          select 1 from deletion_tasks where state = 'dead' order by finished_at, organization_id, id ${mostRows}
        )
        select count(*) filter (where state = 'scheduled')::integer as scheduled,
          count(*) filter (where state = 'running')::integer as running,
          (select count(*)::integer from dead) as dead,
          (select ${isoTime("o.due_at")} from open o order by o.due_at limit 1) as oldest_due_at,
          (
            select ${isoTime("u.since")} from deletions_unsettled u order by u.written_by, u.organization_id, u.id limit 1
          ) as unsettled_since,
          (select ${isoTime("clock.now")} from (select clock_timestamp() as now) clock) as now
        from open`)
    ),
    ([row]) => (row === undefined ? Effect.die("A count has a row") : Effect.succeed(row))
  )
