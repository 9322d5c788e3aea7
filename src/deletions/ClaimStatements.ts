/** The statements that claim tasks: those of all organizations together, or those of one. */
import { Schema } from "effect"
import { SqlSchema } from "effect/sql"
import type { Fragment } from "effect/sql/Statement"
import type { Database } from "../database/Database.ts"
import { attemptsBesideOthers, Claim, maximumAttempts } from "./Task.ts"
import { mostVisits } from "./Turns.ts"

/** The last error of a task whose workers never reported one. */
export const stopped = "The worker stopped during the attempt"

/** Which tasks are claimed together. */
export type Kind = "due" | "expired" | "alone"

export const kinds: ReadonlyArray<Kind> = ["due", "expired", "alone"]

const Timestamp = Schema.DateTimeUtcFromString

/** Whose a claim is, from when and until when. */
const Lease = { token: Schema.String, now: Timestamp, leaseEnd: Timestamp }

/** A task that was claimed, or that is dead by now. The token of a dead one is nobody's. */
const Taken = Schema.Struct({ ...Claim.fields, isDead: Schema.Boolean, reason: Schema.NullOr(Schema.String) })
export type Taken = typeof Taken.Type

/** A task that can be claimed, unless another worker is just claiming it. */
export const Open = Schema.Struct({ organization: Schema.String, taskId: Schema.String, dueAt: Schema.String })
export type Open = typeof Open.Type

const Ids = Schema.Array(Schema.String)

const Share = Schema.Struct({ organization: Schema.String, tasks: Schema.Int })

const Visiting = Schema.Struct({ after: Schema.String, now: Timestamp, limit: Schema.Int })

const Visit = Schema.Struct({ organization: Schema.String, due: Schema.Int, visits: Schema.Int })

/**
 * The statements, over a database.
 *
 * @param tracesDeliveries whether claims have the trace of their delivery
 */
export const make = (sql: Database, tracesDeliveries: boolean) => {
  const at = (time: string) => sql`${time}::timestamptz`

  const conditions: Readonly<Record<Kind, Fragment>> = {
    due: sql`state = 'scheduled'`,
    expired: sql`state = 'running' and attempts < ${attemptsBesideOthers}`,
    alone: sql`state = 'running' and attempts >= ${attemptsBesideOthers}`
  }

  const open = sql.literal("organization_id, id, due_at, state = 'running' as is_takeover")

  const taken = sql.literal(`
    t.organization_id as organization, t.id as "taskId", t.idempotency_key as "idempotencyKey",
    t.scheduled_for as "scheduledFor", coalesce(t.claim_token::text, '') as token, t.attempts as attempt,
    t.state = 'dead' as "isDead", t.last_error as reason, open.is_takeover as "isTakeover", open.due_at
    ${tracesDeliveries ? ', t.trace_parent as "traceParent"' : ""}`)

  /** Claims the tasks that `open` has, or marks them dead. `owner`: the SQL of their organization. */
  const take = (
    owner: Fragment,
    { leaseEnd, now, token }: { readonly token: string; readonly now: string; readonly leaseEnd: string }
  ) => sql`
    dead as (
      update deletion_tasks t set
        state = 'dead', due_at = null, finished_at = ${at(now)}, last_error = coalesce(t.last_error, ${stopped})
      from open
      where t.organization_id = ${owner} and t.id = open.id and t.attempts >= ${maximumAttempts}
      returning ${taken}
    ),
    claimed as (
      update deletion_tasks t set
        state = 'running', attempts = t.attempts + 1, due_at = ${at(leaseEnd)},
        claim_token = ${token}::uuid, started_at = coalesce(t.started_at, ${at(now)})
      from open
      where t.organization_id = ${owner} and t.id = open.id and t.attempts < ${maximumAttempts}
      returning ${taken}
    )
    select * from (select * from claimed union all select * from dead) t order by due_at`

  // The limit is in the text: a plan for any limit reads the whole table.
  const limited = (limit: number) => sql.literal(`limit ${limit}`)

  /**
   * Due tasks of an organization, oldest first. Only the index for turns has this order: with any other, the planner may
   * pass over a backlog of another organization, or over all that this one ever had.
   */
  const dueOf = (owner: Fragment, now: string) => sql`
    (organization_id, due_at) > (${owner}, '-infinity') and (organization_id, due_at) <= (${owner}, ${at(now)})
    and ${conditions.due} order by organization_id nulls first, due_at`

  return {
    /** Claims tasks of any organization: of those that have shares; otherwise those first that have been due the longest. */
    ofAll: SqlSchema.findAll({
      Request: Schema.Struct({
        ...Lease,
        due: Schema.Int,
        expired: Schema.Int,
        alone: Schema.Int,
        shares: Schema.Array(Share)
      }),
      Result: Taken,
      execute: ({ alone, due, expired, shares, ...lease }) => {
        const oldest = (kind: Kind, limit: number) => sql`
          select ${open} from deletion_tasks where due_at <= ${at(lease.now)} and ${conditions[kind]}
          order by due_at ${limited(limit)} for update skip locked`
        // The inner limit is for the planner. No more rows are locked than the outer one lets through.
        const shared = sql`
          select t.* from unnest(
            ${shares.map(({ organization }) => organization)}::text[], ${shares.map(({ tasks }) => tasks)}::integer[]
          ) as share (owner, tasks)
          cross join lateral (
            select * from (
              select ${open} from deletion_tasks
              where ${dueOf(sql.literal('share.owner collate "C"'), lease.now)} ${limited(due)} for update skip locked
            ) oldest limit share.tasks
          ) t`
        return sql`
          with due as (${shares.length > 0 ? shared : oldest("due", due)}), expired as (${oldest("expired", expired)}),
          alone as (${oldest("alone", alone)}),
          open as materialized (select * from due union all select * from expired union all select * from alone),
          ${take(sql.literal("open.organization_id"), lease)}`
      }
    }),

    /**
     * Visits organizations that have scheduled tasks, by their ids, each with a look into the index. Counts more of each
     * where they are few.
     */
    visit: SqlSchema.findAll({
      Request: Visiting,
      Result: Visit,
      execute: ({ after, limit, now }) => {
        const next = (last: Fragment) => sql`
          select organization_id, due_at from deletion_tasks
          where ${conditions.due} and organization_id > ${last} order by organization_id nulls first, due_at limit 1`
        return sql`
          with recursive visited as (
            select *, 1 as visits from (${next(sql`${after}`)}) first
            union all
            select t.*, visited.visits + 1 from visited
            cross join lateral (${next(sql.literal("visited.organization_id"))}) t
            where visited.visits < ${sql.literal(String(mostVisits))}
          )
          select visited.organization_id as organization, found.due, visited.visits from visited
          cross join lateral (
            select count(*)::integer as due from (
              select from (
                select from deletion_tasks where ${dueOf(sql.literal("visited.organization_id"), now)} ${limited(limit)}
              ) oldest limit (select ${sql.literal(String(2 * limit))} / count(*) + 1 from visited)
            ) counted
          ) found
          where visited.due_at <= ${at(now)} or visited.visits = ${sql.literal(String(mostVisits))}
          order by visited.visits`
      }
    }),

    /** The same on a distributed database, where each server counts what is due: no statement looks into all indexes. */
    visitAllServers: SqlSchema.findAll({
      Request: Visiting,
      Result: Schema.Struct({ organization: Schema.String, due: Schema.Int }),
      execute: ({ after, limit, now }) => sql`
        select organization_id as organization, least(count(*), ${sql.literal(String(limit))})::integer as due
        from deletion_tasks where due_at <= ${at(now)} and ${conditions.due} and organization_id > ${after}
        group by organization_id order by organization_id ${limited(mostVisits)}`
    }),

    /** Finds tasks of any organization to claim, oldest first, after one that was found before. It locks nothing. */
    find: SqlSchema.findAll({
      Request: Schema.Struct({
        kind: Schema.Literals(["due", "expired", "alone"]),
        now: Timestamp,
        limit: Schema.Int,
        after: Schema.UndefinedOr(Open)
      }),
      Result: Open,
      execute: ({ after, kind, limit, now }) => {
        const isAfter =
          after === undefined
            ? sql`true`
            : sql`(due_at, organization_id, id) > (${at(after.dueAt)}, ${after.organization}, ${after.taskId}::uuid)`
        return sql`
          select organization_id as organization, id as "taskId", due_at::text as "dueAt" from deletion_tasks
          where due_at <= ${at(now)} and ${conditions[kind]} and ${isAfter}
          order by due_at, organization_id, id ${limited(limit)}`
      }
    }),

    /** Claims those of an organization's tasks that are still open, and that no other worker is just claiming. */
    ofOne: SqlSchema.findAll({
      Request: Schema.Struct({
        ...Lease,
        organization: Schema.String,
        kind: Schema.Literals(["due", "expired", "alone"]),
        ids: Ids
      }),
      Result: Taken,
      execute: ({ ids, kind, organization, ...lease }) => sql`
        with open as materialized (
          select ${open} from deletion_tasks
          where organization_id = ${organization} and id = any (${ids}::uuid[])
            and due_at <= ${at(lease.now)} and ${conditions[kind]}
          order by due_at for update skip locked
        ),
        ${take(sql`${organization}`, lease)}`
    }),

    /** Claims the oldest due tasks of an organization. */
    oldestOfOne: SqlSchema.findAll({
      Request: Schema.Struct({ ...Lease, organization: Schema.String, tasks: Schema.Int }),
      Result: Taken,
      execute: ({ organization, tasks, ...lease }) => sql`
        with open as materialized (
          select ${open} from deletion_tasks
          where organization_id = ${organization} and ${dueOf(sql`${organization}`, lease.now)} ${limited(tasks)}
          for update skip locked
        ),
        ${take(sql`${organization}`, lease)}`
    })
  }
}
