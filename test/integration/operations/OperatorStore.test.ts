/** The reads and changes of the operators' pages, over the tables. */
import { userInfo } from "node:os"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { State } from "../../../src/api/DeletionTasks.ts"
import { layerShared } from "../../../src/database/Database.ts"
import { maximumAttempts } from "../../../src/deletions/Retries.ts"
import { type Task } from "../../../src/deletions/OperatorTasks.ts"
import * as ApiKeys from "../../../src/keys/ApiKeys.ts"
import * as Commands from "../../../src/operations/Commands.ts"
import { type FirstRows, mostRows, OperatorStore } from "../../../src/operations/OperatorStore.ts"
import { addTasks } from "../../support/deletions/invoiceFixture.ts"
import { reason, Tasks } from "../../support/deletions/taskFixture.ts"
import { loginOf, TestDatabase } from "../../support/TestDatabase.ts"

const services = OperatorStore.layer.pipe(Layer.provideMerge(Tasks.layer))

const idsOf = (page: FirstRows<{ readonly id: string }>) => page.rows.map(({ id }) => id)

const user = userInfo().username

const everything = { state: undefined, organization: undefined }

/** Many tasks of an organization and a state, of which some share a time. */
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
const timeOf = ({ due_at, finished_at, scheduled_for }: Task, organization: string | undefined) =>
  organization === undefined ? (due_at ?? finished_at ?? "") : scheduled_for

const register = (...organizations: ReadonlyArray<string>) =>
  Effect.flatMap(TestDatabase, ({ sql }) =>
    Effect.forEach(organizations, (id) => sql`insert into organizations ${sql.insert({ organization_id: id, id })}`)
  )

layer(services, { excludeTestServices: true })("the operators' store", (it) => {
  it.effect("lists tasks of all states, and finds one by its id or Idempotency-Key", () =>
    Effect.gen(function* () {
      const { findTasks, tasks } = yield* OperatorStore
      const made = yield* Tasks
      const { completed } = made
      yield* register("org_a", "org_b")
      assert.sameMembers(idsOf(yield* tasks(everything)), Object.values(made))
      for (const text of [completed, completed.toUpperCase(), "completed"]) {
        for (const organization of [undefined, "org_a", "org_b"]) {
          const found = idsOf(yield* findTasks(text, organization))
          assert.deepStrictEqual(found, organization === "org_b" ? [] : [completed])
        }
      }
      const [dead] = (yield* findTasks("dead", undefined)).rows
      assert.deepInclude(dead, { idempotency_key: "dead", attempts: maximumAttempts, last_error: reason })
      assert.deepStrictEqual(idsOf(yield* findTasks("no such key", undefined)), [])
    })
  )

  it.effect("shows a task to its organization alone", () =>
    Effect.gen(function* () {
      const { task } = yield* OperatorStore
      const { completed } = yield* Tasks
      assert.deepInclude(yield* task("org_a", completed), { idempotency_key: "completed", invoices_count: 1 })
      for (const other of [task("org_b", completed), task("org_a", "no uuid")])
        assert.strictEqual((yield* Effect.flip(other)).status, 404)
    })
  )

  it.effect("a command that changes something is in the audit log, and one that does not is not", () =>
    Effect.gen(function* () {
      const store = yield* OperatorStore
      const { completed } = yield* Tasks
      const key = yield* Commands.createKey({ organization: "org_audit", name: "k" })
      yield* Effect.repeat(Commands.revokeKey(key.id), { times: 1 })
      const secret = yield* Commands.addSecret("org_audit")
      yield* Effect.repeat(Commands.revokeSecret(secret.id), { times: 1 })
      yield* Effect.flip(Commands.replayTask({ id: completed, organization: undefined }))
      const { rows } = yield* store.audit({})
      const entries = rows.map((row) => [
        row.organization_id,
        row.actor,
        row.source,
        row.action,
        row.target,
        row.result
      ])
      assert.deepStrictEqual(entries, [
        ["org_audit", user, "command line", "secret.revoke", secret.id, "revoked"],
        ["org_audit", user, "command line", "secret.add", secret.id, "created"],
        ["org_audit", user, "command line", "key.revoke", key.id, "revoked"],
        ["org_audit", user, "command line", "key.create", key.id, "created"]
      ])
      const { rows: ofKey } = yield* store.audit({ organization: "org_audit", target: key.id })
      assert.deepStrictEqual(ofKey, rows.slice(2))
      assert.deepStrictEqual((yield* store.audit({ organization: "org_a" })).rows, [])
    })
  )

  it.effect("lists keys of an organization without their hashes, and says if there are more", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const { keys } = yield* OperatorStore
      const made = yield* ApiKeys.create({ organization: "org_keys", name: "Warehouse" })
      const { isPartial, rows } = yield* keys("org_keys")
      assert.deepStrictEqual([rows.length, isPartial], [1, false])
      assert.deepInclude(rows[0], { id: made.id, name: "Warehouse", last_used_on: null, revoked_at: null })
      assert.notInclude(Object.keys(rows[0] ?? {}), "key_hash")
      yield* sql`
        insert into api_keys (organization_id, id, name, prefix, key_hash)
        select 'org_many', 'key_' || n, 'k', 'pda_live_', sha256(n::text::bytea) from generate_series(1, ${mostRows + 1}::integer) n`
      const first = yield* keys("org_many")
      assert.deepStrictEqual([first.rows.length, first.isPartial], [100, true])
    })
  )

  it.effect.each(State.literals)("lists the first of many %s tasks in order, and that there are more", (state) =>
    Effect.gen(function* () {
      const store = yield* OperatorStore
      yield* many("org_many", state, mostRows + 1)
      for (const organization of [undefined, "org_many"]) {
        const { isPartial, rows } = yield* store.tasks({ state, organization })
        assert.deepStrictEqual([rows.length, isPartial], [mostRows, true])
        assert.strictEqual(new Set(rows.map(({ id }) => id)).size, mostRows)
        const times = rows.map((task) => timeOf(task, organization))
        assert.deepStrictEqual(times, times.toSorted().toReversed())
      }
      assert.deepStrictEqual(yield* store.tasks({ state, organization: "org_nobody" }), { rows: [], isPartial: false })
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

  it.effect("names the store that the database role may not use, and reads the others", () =>
    Effect.gen(function* () {
      const { dead } = yield* Tasks
      yield* ApiKeys.create({ organization: "org_keys", name: "Warehouse" })
      const sql = yield* loginOf("api")
      const layerOfRole = Layer.fresh(OperatorStore.layer).pipe(Layer.provide(layerShared(sql)))
      const store = yield* Effect.provide(OperatorStore, layerOfRole)
      assert.isNotEmpty((yield* store.keys(undefined)).rows)
      for (const refused of [
        Effect.asVoid(store.tasks({ ...everything, state: "dead" })),
        Effect.asVoid(store.task("org_a", dead)),
        Effect.asVoid(store.lastDay),
        Effect.asVoid(store.secrets("org_a"))
      ])
        assert.include((yield* Effect.flip(refused)).message, "The task store refuses the service")
    })
  )
})
