/**
 * Gates in the database that hold whoever comes by: a trigger that waits for an advisory lock which the test holds.
 * A process is then at exactly one step, for as long as the test wants.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { openTransaction, waiting } from "../../support/deletions/sessions.ts"

/** Where a gate can be: at the end of the statement that claims a task, or halfway through a deletion. */
const gates = {
  claim: {
    lock: 1,
    on: "after update on deletion_tasks for each row when (old.state = 'scheduled' and new.state = 'running')"
  },
  deletion: { lock: 2, on: "before update on invoice_lines for each row" }
} as const
export type Gate = keyof typeof gates

/** Installs the gates. They are open. */
export const install = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  yield* sql.unsafe(`create function pass_gate() returns trigger language plpgsql as $$ begin
    perform pg_advisory_xact_lock_shared(tg_argv[0]::bigint);
    return new;
  end $$`)
  yield* Effect.forEach(Object.entries(gates), ([name, { lock, on }]) =>
    sql.unsafe(`create trigger gate_${name} ${on} execute function pass_gate(${lock})`)
  )
})

/** Waits until so many backends wait at closed gates. */
export const areWaiting = (sql: PgClient.PgClient, count: number) =>
  waiting(sql, "advisory", (found) => found === count)

/** Closes a gate, until `commit` is run. */
export const close = (sql: PgClient.PgClient, gate: Gate) =>
  openTransaction(sql, sql`select pg_advisory_xact_lock(${gates[gate].lock}::bigint)`)
