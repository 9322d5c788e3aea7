/** The reads and changes of the operators' pages, over the tables. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { State } from "../../../src/api/DeletionTasks.ts"
import { layerShared } from "../../../src/database/Database.ts"
import { taskIdOf } from "../../../src/deletions/Delivery.ts"
import { maximumAttempts } from "../../../src/deletions/Task.ts"
import { mostItems, mostOrganizations, type Task } from "../../../src/deletions/Tasks.ts"
import * as ApiKeys from "../../../src/keys/ApiKeys.ts"
import * as Commands from "../../../src/operations/Commands.ts"
import { OperatorStore, type Page, pageSize } from "../../../src/operations/OperatorStore.ts"
import { reason, Tasks } from "../../support/deletions/taskFixture.ts"
import { loginOf, TestDatabase } from "../../support/TestDatabase.ts"

const services = OperatorStore.layer.pipe(Layer.provideMerge(Tasks.layer))

const idsOf = (page: Page<{ readonly id: string }>) => page.rows.map(({ id }) => id)

const alice = { name: "alice", source: "127.0.0.1" }

const everything = { state: undefined, organization: undefined }

/** Many tasks of an organization and a state, of which some share a time. */
const many = Effect.fnUntraced(function* (organization: string, state: State, count: number) {
  const { sql } = yield* TestDatabase
  const due = state === "scheduled" || state === "running"
  yield* sql`
    insert into deletion_tasks (organization_id, id, idempotency_key, fingerprint, payload, invoices_count,
      invoice_lines_count, received_at, scheduled_for, state, due_at, finished_at)
    select ${organization}, gen_random_uuid(), 'many ' || n, '', '{"invoices":[],"invoice_lines":[]}', 1, 0, now(), t,
      ${state}, case when ${due} then t end, case when ${!due} then t end
    from generate_series(1, ${count}::integer) n,
      lateral (select '2026-01-01'::timestamptz + n / 3 * interval '1 second' as t) times`
})

/** The time by which a list is ordered. */
const timeOf = ({ due_at, finished_at, scheduled_for }: Task, organization: string | undefined) =>
  organization === undefined ? (due_at ?? finished_at ?? "") : scheduled_for

const register = (...organizations: ReadonlyArray<string>) =>
  Effect.flatMap(TestDatabase, ({ sql }) =>
    Effect.forEach(organizations, (id) => sql`insert into organizations ${sql.insert({ organization_id: id, id })}`)
  )

layer(services, { excludeTestServices: true })("the operators' store", (it) => {
  it.effect(
    "lists tasks of all states, and finds one by its id or Idempotency-Key, in any organization or in one",
    () =>
      Effect.gen(function* () {
        const { findTasks, tasks } = yield* OperatorStore
        const made = yield* Tasks
        const { completed } = made
        yield* register("org_a", "org_b")
        assert.sameMembers(idsOf(yield* tasks(everything, undefined)), Object.values(made))
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

  it.effect("shows a task with its items to its organization alone", () =>
    Effect.gen(function* () {
      const { task } = yield* OperatorStore
      const { completed } = yield* Tasks
      assert.deepInclude(yield* task("org_a", completed), {
        invoices: [{ invoice_id: "invoice_completed", clinic_id: null, client_id: null }],
        invoice_lines: [{ invoice_line_id: "line_completed", invoice_id: null, clinic_id: null }]
      })
      for (const other of [task("org_b", completed), task("org_a", "no uuid")]) {
        assert.strictEqual((yield* Effect.flip(other)).status, 404)
      }
    })
  )

  it.effect("a command that changes something is in the audit log, and one that does not is not", () =>
    Effect.gen(function* () {
      const store = yield* OperatorStore
      const { completed } = yield* Tasks
      const key = yield* Commands.createKey(alice, { organization: "org_audit", name: "k" })
      yield* Commands.revokeKey(alice, key.id)
      yield* Commands.revokeKey(alice, key.id)
      const secret = yield* Commands.addSecret(alice, "org_audit")
      yield* Commands.revokeSecret(alice, secret.id)
      yield* Commands.revokeSecret(alice, secret.id)
      yield* Commands.replayTask(alice, { id: completed, organization: undefined })
      const { rows } = yield* store.audit(undefined)
      assert.deepStrictEqual(
        rows.map((row) => [row.organization_id, row.actor, row.source, row.action, row.target, row.result]),
        [
          ["org_a", "alice", "127.0.0.1", "task.replay", completed, "left as it is: completed"],
          ["org_audit", "alice", "127.0.0.1", "secret.revoke", secret.id, "revoked"],
          ["org_audit", "alice", "127.0.0.1", "secret.add", secret.id, "created"],
          ["org_audit", "alice", "127.0.0.1", "key.revoke", key.id, "revoked"],
          ["org_audit", "alice", "127.0.0.1", "key.create", key.id, "created"]
        ]
      )
      assert.deepStrictEqual(yield* store.history("org_a", completed), rows.slice(0, 1))
    })
  )

  it.effect("lists keys of an organization, without their hashes", () =>
    Effect.gen(function* () {
      const made = yield* ApiKeys.create({ organization: "org_keys", name: "Warehouse" })
      const { rows } = yield* (yield* OperatorStore).keys({ organization: "org_keys" }, undefined)
      assert.strictEqual(rows.length, 1)
      assert.deepInclude(rows[0], { id: made.id, name: "Warehouse", last_used_on: null, revoked_at: null })
      assert.notInclude(Object.keys(rows[0] ?? {}), "key_hash")
    })
  )

  it.effect.each(["", "x", '["a"]'])("begins a list at its beginning for the place %s", (place) =>
    Effect.gen(function* () {
      const store = yield* OperatorStore
      const text = Buffer.from(place).toString("base64url")
      const dead = { ...everything, state: "dead" } as const
      assert.deepStrictEqual(yield* store.tasks(dead, text), yield* store.tasks(dead, undefined))
    })
  )

  it.effect.each(['["2026-01-01 00:00:00+00","o","no uuid"]', '["soon","o","\\u0000"]'])(
    "refuses the place %s, which is of other values",
    (place) =>
      Effect.gen(function* () {
        const { audit, tasks } = yield* OperatorStore
        const text = Buffer.from(place).toString("base64url")
        const problem = yield* Effect.flip(tasks({ ...everything, state: "dead" }, text))
        assert.deepInclude(problem, { status: 422, message: "A parameter is invalid." })
        assert.deepStrictEqual(yield* Effect.flip(audit(text)), problem)
      })
  )

  it.effect.each(State.literals)("lists each of many %s tasks once and in order, from page to page", (state) =>
    Effect.gen(function* () {
      const store = yield* OperatorStore
      const count = pageSize * 2 + 3
      yield* many("org_many", state, count)
      for (const organization of [undefined, "org_many"]) {
        const seen: Array<Task> = []
        let next: string | undefined
        do {
          const page = yield* store.tasks({ state, organization }, next)
          seen.push(...page.rows)
          next = page.next
        } while (next !== undefined)
        assert.strictEqual(new Set(seen.map(({ id }) => id)).size, seen.length)
        const times = seen.map((task) => timeOf(task, organization))
        assert.deepStrictEqual(times, times.toSorted().toReversed())
        assert.strictEqual(seen.length, organization === undefined ? count + 1 : count)
      }
      const ofNobody = yield* store.tasks({ state, organization: "org_nobody" }, undefined)
      assert.isEmpty(ofNobody.rows)
    })
  )
})

layer(services, { excludeTestServices: true })("the operators' store", (it) => {
  it.effect("shows the first items of a task, and the beginning of long ids", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const { task } = yield* OperatorStore
      const { completed } = yield* Tasks
      yield* sql`
        update deletion_tasks set payload = jsonb_build_object('invoice_lines', '[]'::jsonb, 'invoices', (
          select jsonb_agg(jsonb_build_object('invoice_id', repeat('x', 1000) || n)) from generate_series(1, 500) n
        )) where id = ${completed}`
      const { invoices } = yield* task("org_a", completed)
      assert.strictEqual(invoices.length, mostItems)
      assert.strictEqual(invoices[0]?.["invoice_id"]?.length, 200)
    })
  )

  it.effect("changes nothing that cannot be logged", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const before = yield* ApiKeys.list("org_refused")
      yield* sql`alter table audit_log add constraint refused check (organization_id <> 'org_refused')`
      yield* Effect.flip(Commands.createKey(alice, { organization: "org_refused", name: "k" }))
      yield* sql`alter table audit_log drop constraint refused`
      assert.deepStrictEqual(yield* ApiKeys.list("org_refused"), before)
    })
  )

  it.effect("finds the deletions of a registered organization among those of a thousand made-up ones", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const store = yield* OperatorStore
      const id = taskIdOf("org_registered", "many 1")
      yield* register("org_registered")
      yield* many("org_registered", "completed", 1)
      yield* sql`
        update deletion_tasks set id = ${id} where organization_id = 'org_registered'`
      yield* sql`
        insert into deletion_tasks (organization_id, id, idempotency_key, fingerprint, payload, invoices_count,
          invoice_lines_count, received_at, scheduled_for, state, finished_at)
        select 'aaa_' || n, gen_random_uuid(), 'made up', '', '{}', 1, 0, now(), '2020-01-01', 'completed', now()
        from generate_series(1, ${mostOrganizations}::integer) n`
      const found = yield* store.findTasks("many 1", undefined)
      assert.deepStrictEqual(idsOf(found), [id])
      assert.isEmpty((yield* store.findTasks("made up", undefined)).rows)
    })
  )

  it.effect("names the store that the database role may not use, and reads the others", () =>
    Effect.gen(function* () {
      const { dead } = yield* Tasks
      yield* ApiKeys.create({ organization: "org_keys", name: "Warehouse" })
      const sql = yield* loginOf("api")
      const layerOfRole = Layer.fresh(OperatorStore.layer).pipe(Layer.provide(layerShared(sql)))
      const store = yield* Effect.provide(OperatorStore, layerOfRole)
      assert.isNotEmpty((yield* store.keys({ organization: undefined }, undefined)).rows)
      for (const refused of [
        Effect.asVoid(store.tasks({ ...everything, state: "dead" }, undefined)),
        Effect.asVoid(store.task("org_a", dead)),
        Effect.asVoid(store.replay(alice, "org_a", dead)),
        Effect.asVoid(store.addSecret(alice, "org_a"))
      ]) {
        assert.include((yield* Effect.flip(refused)).message, "may not do this in the task store")
      }
    }).pipe(Effect.scoped)
  )

  it.effect("lists open transactions that have written", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const { holders } = yield* OperatorStore
      const written = sql<{ pid: number }>`select pg_backend_pid() as pid, pg_current_xact_id()::text`
      const [open, pid] = yield* sql.withTransaction(
        Effect.flatMap(written, ([row]) => Effect.map(holders, (found) => [found, row?.pid] as const))
      )
      assert.include(
        open.map((each) => each.pid),
        pid
      )
    })
  )
})
