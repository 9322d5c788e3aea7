/** A worker is killed in the middle of its tasks, and another one takes them over. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { eventually } from "../../../test/blackbox/support/eventually.ts"
import * as Ledger from "../../../test/faults/support/Ledger.ts"
import * as Program from "../../../test/faults/support/Program.ts"
import { atLeast, atMost, note, make, verdict } from "../Scenario.ts"

const tasks = 64
const freshTasks = 12_000

/** Notes when a task is begun, and makes it take a while; those that come on top of it take none. */
const slow = (seconds: number) => [
  "create table begun (id text not null, at timestamptz not null)",
  `create function begin_slowly() returns trigger language plpgsql as $$ begin
     insert into begun values (new.id, clock_timestamp());
     if substring(new.id from '\\d+$')::integer <= ${tasks} then perform pg_sleep(${seconds}); end if;
     return new;
   end $$`,
  "create trigger begin_slowly before update on invoices for each row execute function begin_slowly()"
]

const count = (sql: PgClient.PgClient, condition: string) =>
  Effect.map(sql.unsafe<{ n: number }>(`select count(*)::integer as n from ${condition}`), ([row]) => row?.n ?? 0)

/** Tasks of which nobody has to wait for another come all the time. */
const freshOnes = (sql: PgClient.PgClient) => {
  let next = tasks
  return Effect.suspend(() => {
    const invoices = Array.from({ length: 50 }, () => (next += 1))
    return sql`
      insert into deletion_tasks (
        organization_id, id, idempotency_key, fingerprint, payload, invoices_count, invoice_lines_count,
        received_at, scheduled_for, due_at
      )
      select ${Ledger.organization}, gen_random_uuid(), 'fresh_' || n, '', jsonb_build_object(
        'invoices', jsonb_build_array(jsonb_build_object('invoice_id', 'invoice_' || n)),
        'invoice_lines', jsonb_build_array()
      ), 1, 0, now(), now(), now()
      from unnest(${invoices}::integer[]) n`
  }).pipe(Effect.delay("50 millis"), Effect.repeat({ while: () => next < freshTasks }))
}

const figures = (sql: PgClient.PgClient, killedAt: string, left: ReadonlyArray<string>) =>
  Effect.map(
    sql<{ begun: number; finished: number; late: number; done: number; twice: number }>`
      with theirs as (
        select t.id, (select max(c.at) from completions c where c.id = t.id) as finished,
          (select min(b.at) from begun b
           where b.id = t.payload #>> '{invoices,0,invoice_id}' and b.at > ${killedAt}::timestamptz) as begun
        from deletion_tasks t where t.id::text = any (${left}::text[])
      )
      select coalesce(extract(epoch from max(begun) - ${killedAt}::timestamptz), 1e6)::float8 as begun,
        coalesce(extract(epoch from max(finished) - ${killedAt}::timestamptz), 1e6)::float8 as finished,
        (count(*) filter (where finished > ${killedAt}::timestamptz + interval '2 seconds'))::integer as late,
        count(finished)::integer as done,
        (select count(*)::integer from (select from completions group by id having count(*) > 1) again) as twice
      from theirs`,
    ([row]) => row ?? { begun: 1e6, finished: 1e6, late: 0, done: 0, twice: 0 }
  )

const takeover = (name: string, seconds: number, options: { readonly isBusy: boolean }) =>
  make({
    name,
    done: `A worker with ${tasks} tasks of ${seconds} s is killed with -9${options.isBusy ? ", while 1,000 fresh ones a second come in" : ""}`,
    promise: "another worker has begun all of them within 2 s",
    run: Effect.fnUntraced(function* ({ empty }) {
      const { sql, url } = yield* empty
      yield* Ledger.open(sql, options.isBusy ? freshTasks : tasks)
      yield* Effect.forEach(slow(seconds), (statement) => sql.unsafe(statement))
      // Nothing of the first worker is done before it is killed.
      const { release } = yield* holdInvoices(sql)
      yield* Ledger.scheduleAll(
        sql,
        Array.from({ length: tasks }, (_, index) => index + 1)
      )
      const first = yield* Program.start("worker", url)
      yield* eventually(
        "the first worker has them all",
        Effect.map(count(sql, "deletion_tasks where state = 'running'"), (claimed) => claimed === tasks)
      )
      const sessions = yield* sql<{ pid: number }>`
      select pid from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and application_name <> 'practice-data-faults'`
      yield* Program.start("worker", url)
      if (options.isBusy) yield* Effect.forkScoped(freshOnes(sql))
      yield* Effect.sleep("500 millis")

      yield* Program.kill(first)
      const [now] = yield* sql<{ now: string }>`select clock_timestamp()::text as now`
      const killedAt = now?.now ?? ""
      // What it had sent ends with its sessions, which Postgres notices by itself.
      const own = sessions.map(({ pid }) => pid)
      yield* eventually(
        "the sessions of the first worker are gone",
        Effect.map(count(sql, `pg_stat_activity where pid in (${own.join()})`), (open) => open === 0)
      )
      const left = yield* sql<{ id: string }>`
      select id::text as id from deletion_tasks where idempotency_key like 'task%' and state <> 'completed'`
      yield* release
      const ids = left.map(({ id }) => id)
      yield* eventually(
        "none of them is left",
        Effect.map(
          count(sql, "deletion_tasks where idempotency_key like 'task%' and state <> 'completed'"),
          (open) => open === 0
        )
      ).pipe(Effect.timeoutOption("20 seconds"))
      const { begun, done, finished, late, twice } = yield* figures(sql, killedAt, ids)
      return verdict(
        atLeast(tasks, "taken over", done),
        atMost(2, "the last one begun after", begun, " s"),
        seconds === 0 ? atMost(2, "finished after", finished, " s") : note(`finished after ${finished.toFixed(2)} s`),
        note(`${late} finished later than 2 s`),
        atMost(0, "done twice", twice)
      )
    })
  })

/** Locks the invoices until it is told to let go. */
const holdInvoices = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const connection = yield* sql.reserve
  yield* connection.executeUnprepared("begin", [], undefined)
  yield* connection.executeUnprepared("lock table invoices in share mode", [], undefined)
  return { release: connection.executeUnprepared("rollback", [], undefined) }
})

export const takeovers = [
  takeover("takeover", 0, { isBusy: false }),
  takeover("takeover-slow", 0.1, { isBusy: false }),
  takeover("takeover-busy", 0.1, { isBusy: true })
]
