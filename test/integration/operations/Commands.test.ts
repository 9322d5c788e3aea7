/** The commands that change something with their audit log, and the lists of tasks. */
import { userInfo } from "node:os"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { State } from "../../../src/api/DeletionTasks.ts"
import * as OperatorTasks from "../../../src/deletions/OperatorTasks.ts"
import * as ApiKeys from "../../../src/keys/ApiKeys.ts"
import * as Commands from "../../../src/operations/Commands.ts"
import { addTasks } from "../../support/deletions/invoiceFixture.ts"
import { Tasks } from "../../support/deletions/taskFixture.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const idsOf = (rows: ReadonlyArray<{ readonly id: string }>) => rows.map(({ id }) => id)

const user = userInfo().username

/** More tasks of an organization and a state than are listed. Some share a time. */
const many = (organization: string, state: State, count: number) => {
  const time = "'2026-01-01'::timestamptz + n / 3 * interval '1 second'"
  return addTasks(count, {
    organization_id: `'${organization}'`,
    idempotency_key: "'many ' || n",
    payload: `'{"invoices":[],"invoice_lines":[]}'`,
    scheduled_for: time,
    state: `'${state}'`,
    [state === "scheduled" || state === "running" ? "due_at" : "finished_at"]: time
  })
}

/** The time by which a list is ordered. */
const timeOf = ({ due_at, finished_at, scheduled_for }: OperatorTasks.Task, organization: string | undefined) =>
  organization === undefined ? (due_at ?? finished_at ?? "") : scheduled_for

layer(Tasks.layer, { excludeTestServices: true })("for operators", (it) => {
  it.effect("a command that changes something is in the audit log, and one that does not is not", () =>
    Effect.gen(function* () {
      const { completed } = yield* Tasks
      const key = yield* Commands.createKey({ organization: "org_audit", name: "k" })
      yield* Effect.repeat(Commands.revokeKey(key.id), { times: 1 })
      const secret = yield* Commands.addSecret("org_audit")
      yield* Effect.repeat(Commands.revokeSecret(secret.id), { times: 1 })
      yield* Effect.flip(Commands.replayTask({ id: completed, organization: undefined }))
      const rows = yield* Commands.auditLog(100)
      const entries = rows.map(({ action, actor, result, source, target }) =>
        [actor, source, action, target, result].join()
      )
      assert.deepStrictEqual(entries, [
        `${user},command line,secret.revoke,${secret.id},revoked`,
        `${user},command line,secret.add,${secret.id},created`,
        `${user},command line,key.revoke,${key.id},revoked`,
        `${user},command line,key.create,${key.id},created`
      ])
    })
  )

  it.effect.each(State.literals)("lists the first of many %s tasks in order", (state) =>
    Effect.gen(function* () {
      yield* many("org_many", state, 101)
      for (const organization of [undefined, "org_many"]) {
        const rows = yield* OperatorTasks.list({ state, organization }, 100)
        assert.strictEqual(new Set(idsOf(rows)).size, 100)
        const times = rows.map((task) => timeOf(task, organization))
        assert.deepStrictEqual(times, times.toSorted().toReversed())
      }
      assert.isEmpty(yield* OperatorTasks.list({ state, organization: "org_nobody" }, 100))
    })
  )

  it.effect("changes nothing that cannot be logged", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* sql`alter table audit_log add constraint refused check (organization_id <> 'org_refused')`
      yield* Effect.flip(Commands.createKey({ organization: "org_refused", name: "k" }))
      yield* sql`alter table audit_log drop constraint refused`
      assert.deepStrictEqual(yield* ApiKeys.list("org_refused"), [])
    })
  )
})
