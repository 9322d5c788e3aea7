/** Deletions that are late or fail. */
import { Effect, Scope } from "effect"
import * as Ledger from "../../../../test/faults/support/Ledger.ts"
import { type Fault, healed, make, start } from "../Fault.ts"

export const deletions: ReadonlyArray<Fault> = [
  make({
    name: "no-worker",
    done: "The worker is stopped, and a deletion has been due for 5 s",
    seen: { alert: "PracticeDataDeletionsLate", says: "has been due for" },
    stand: Effect.fnUntraced(function* (ground) {
      const { sql, url } = yield* ground.empty
      const scope = yield* Effect.scope
      yield* Ledger.open(sql, 2)
      const service = yield* start({ DATABASE_URL: url, ROLES: "intake" })
      return {
        services: [service] as const,
        begin: sql`
          insert into deletion_tasks (
            organization_id, id, idempotency_key, fingerprint, payload, invoices_count, invoice_lines_count,
            received_at, scheduled_for, due_at
          )
          select ${Ledger.organization}, gen_random_uuid(), 'late', '', '{"invoices":[{"invoice_id":"invoice_1"}],"invoice_lines":[]}',
            1, 0, now(), now(), now() - interval '5 seconds'`,
        heal: start({ DATABASE_URL: url, ROLES: "worker" }).pipe(Effect.provideService(Scope.Scope, scope))
      }
    })
  }),
  make({
    name: "deletion-fails",
    done: "A trigger refuses what a deletion writes",
    seen: {
      alert: "PracticeDataDeletionAttemptsFail",
      says: "Attempts of deletions fail",
      log: /"outcome":"failed"|"result":"failed"|A deletion task failed/
    },
    stand: Effect.fnUntraced(function* (ground) {
      const { sql, url } = yield* ground.empty
      yield* Ledger.open(sql, 2)
      const service = yield* start({ DATABASE_URL: url, ROLES: "intake,worker" })
      return {
        services: [service] as const,
        begin: Effect.gen(function* () {
          yield* sql.unsafe(
            "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no' using errcode = 'check_violation'; end $$"
          )
          yield* sql.unsafe("create trigger refuse before update on invoices for each row execute function refuse()")
          yield* Ledger.schedule(sql, 1)
        }),
        heal: Effect.andThen(sql.unsafe("drop trigger refuse on invoices"), healed)
      }
    })
  })
]
