/**
 * What the tests of faults check in the database: invoices to delete, tasks that delete them, and, recorded by triggers
 * whoever writes, how often and when each task was completed, and whether a deletion time was ever written again.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect, Record } from "effect"
import { eventually } from "../../support/eventually.ts"
import type * as Process from "../../support/Process.ts"
import * as Program from "../../support/Program.ts"

export const organization = "org_faults"

const noteRewrites = (table: string) =>
  `create trigger note_rewrite after update on ${table} for each row
     when (old.deleted_at is not null and new.deleted_at is distinct from old.deleted_at)
     execute function note_rewrite()`

// Settling updates a completed task about a second later: it is no completion.
const statements = [
  "create table completions (id uuid not null, at timestamptz not null)",
  `create function note_completion() returns trigger language plpgsql as $$ begin
     insert into completions values (new.id, clock_timestamp());
     return null;
   end $$`,
  `create trigger note_completion after update on deletion_tasks for each row
     when (new.state = 'completed' and new.finished_at is distinct from old.finished_at)
     execute function note_completion()`,
  "create table rewrites (id text not null)",
  `create function note_rewrite() returns trigger language plpgsql as $$ begin
     insert into rewrites values (new.id);
     return null;
   end $$`,
  noteRewrites("invoices"),
  noteRewrites("invoice_lines")
]

/** Starts one role of the program as a process of its own. Tasks are due at once. */
export const start = (
  role: "intake" | "worker" | "data-api",
  databaseUrl: string,
  environment: Process.Environment = {}
) =>
  Program.start(
    { ROLES: role, DATABASE_URL: databaseUrl, DELETION_DELAY: "100ms", ...environment },
    { connections: 32 }
  )

/** Adds the triggers and a number of invoices, with two lines each. */
export const open = Effect.fnUntraced(function* (sql: PgClient.PgClient, invoices: number) {
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement))
  yield* sql`insert into invoices (organization_id, id)
    select ${organization}, 'invoice_' || n from generate_series(1, ${invoices}::integer) n`
  yield* sql`insert into invoice_lines (organization_id, id, invoice)
    select organization_id, id || '_line_' || n, id from invoices, generate_series(1, 2) n`
})

export const idOf = (invoice: number) => `invoice_${invoice}`

/** Schedules a task for now that deletes an invoice, past the intake. Returns its id. */
export const schedule = Effect.fnUntraced(function* (sql: PgClient.PgClient, invoice: number) {
  const [task] = yield* sql<{ id: string }>`
    insert into deletion_tasks (
      organization_id, id, idempotency_key, fingerprint, payload, invoices_count, invoice_lines_count,
      received_at, scheduled_for, due_at
    )
    select ${organization}, gen_random_uuid(), gen_random_uuid()::text, '', jsonb_build_object(
      'invoices', jsonb_build_array(jsonb_build_object('invoice_id', ${idOf(invoice)}::text)),
      'invoice_lines', jsonb_build_array()
    ), 1, 0, now(), now(), now() - interval '1 minute'
    returning id`
  return task?.id ?? ""
})

/** A task that was completed once, after a number of attempts. */
export const completedOnce = (attempts: number) => ({
  state: "completed",
  attempts,
  completions: 1,
  /** How many deletion times its invoice and its lines have, and how many of these differ. */
  deleted: 3,
  deletions: 1
})

type Entry = ReturnType<typeof completedOnce>

export const entryOf = Effect.fnUntraced(function* (sql: PgClient.PgClient, task: string) {
  const rows = yield* sql<Entry>`
    select t.state, t.attempts,
      (select count(*)::integer from completions where id = t.id) as completions,
      count(marked.deleted_at)::integer as deleted,
      count(distinct marked.deleted_at)::integer as deletions
    from deletion_tasks t cross join lateral (
      select deleted_at from invoices where id = t.payload #>> '{invoices,0,invoice_id}'
      union all select deleted_at from invoice_lines where invoice = t.payload #>> '{invoices,0,invoice_id}'
    ) marked
    where t.organization_id = ${organization} and t.id = ${task}
    group by t.organization_id, t.id`
  return rows[0]
})

/** The counts of tasks and invoices when each of a number of tasks was completed once, at its first attempt. */
export const allCompletedOnce = (tasks: number) => ({
  tasks,
  completed: tasks,
  completions: tasks,
  running: 0,
  dead: 0,
  /** Completed before their time. */
  early: 0,
  /** Deletion times that were written again. */
  rewritten: 0,
  /** Invoices that are deleted without a completed task, or not deleted despite one, or before it was due. */
  unfounded: 0,
  /** Lines that were not deleted with their invoice, or at another time. */
  halfDone: 0,
  /** How many tasks had how many attempts. */
  attempts: Record.singleton("1", tasks)
})

type Balance = ReturnType<typeof allCompletedOnce>

/** Counts all tasks and invoices. */
export const balance = (sql: PgClient.PgClient) =>
  Effect.map(
    sql<Balance>`
      with named as (
        select item ->> 'invoice_id' as invoice, bool_or(t.state = 'completed') as completed, min(t.scheduled_for) as due
        from deletion_tasks t, jsonb_array_elements(t.payload -> 'invoices') item group by 1
      )
      select
        (select count(*)::integer from deletion_tasks) as tasks,
        (select count(*)::integer from deletion_tasks where state = 'completed') as completed,
        (select count(*)::integer from completions) as completions,
        (select count(*)::integer from deletion_tasks where state = 'running') as running,
        (select count(*)::integer from deletion_tasks where state = 'dead') as dead,
        (select count(*)::integer from completions c join deletion_tasks t on t.id = c.id where c.at < t.scheduled_for) as early,
        (select count(*)::integer from rewrites) as rewritten,
        (select count(*)::integer from invoices i left join named on named.invoice = i.id
         where i.is_deleted is distinct from coalesce(named.completed, false)
           or i.is_deleted is distinct from (i.deleted_at is not null) or i.deleted_at < named.due) as unfounded,
        (select count(*)::integer from invoice_lines l join invoices i on i.id = l.invoice
         where l.is_deleted <> i.is_deleted or l.deleted_at is distinct from i.deleted_at) as "halfDone",
        (select coalesce(jsonb_object_agg(attempts, n), '{}')
         from (select attempts, count(*) as n from deletion_tasks group by 1) counted) as attempts`,
    ([counts]) => counts
  )

/** How many tasks are not completed. */
export const outstanding = (sql: PgClient.PgClient) =>
  Effect.map(
    sql<{ open: number }>`select count(*)::integer as open from deletion_tasks where state <> 'completed'`,
    ([row]) => row?.open ?? 0
  )

/** Waits until a task is in a state. */
export const reaches = (sql: PgClient.PgClient, task: string, state: string) =>
  eventually(`a task that is ${state}`, entryOf(sql, task), (entry) => entry?.state === state)
