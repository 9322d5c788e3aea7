/** The reads and changes of the operators' pages, over the tables. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Option, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { State } from "../../../src/api/DeletionTasks.ts"
import { connect, layerShared } from "../../../src/database/Database.ts"
import { taskIdOf } from "../../../src/deletions/Delivery.ts"
import { maximumAttempts } from "../../../src/deletions/Task.ts"
import { mostItems, mostOrganizations, pageSize } from "../../../src/deletions/TaskPages.ts"
import { Replay, type Task } from "../../../src/deletions/Tasks.ts"
import * as ApiKeys from "../../../src/keys/ApiKeys.ts"
import * as Commands from "../../../src/operations/Commands.ts"
import { OperatorStore, type Page } from "../../../src/operations/OperatorStore.ts"
import { owners, reason, Tasks } from "../../support/deletions/taskFixture.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const services = OperatorStore.layer.pipe(Layer.provideMerge(Tasks.layer))

const idsOf = (page: Page<{ readonly id: string }>) => page.rows.map(({ id }) => id)

const alice = { name: "alice", source: "127.0.0.1" }

/** Many tasks of an organization and a state, of which some share a time. */
const many = Effect.fnUntraced(function* (organization: string, state: State, count: number) {
  const { sql } = yield* TestDatabase
  const due = state === "scheduled" || state === "running"
  yield* sql`
    insert into deletion_tasks (organization_id, id, idempotency_key, fingerprint, payload, invoices_count,
      invoice_lines_count, received_at, scheduled_for, state, due_at, finished_at)
    select ${organization}, gen_random_uuid(), 'many ' || n, '', '{"invoices":[],"invoice_lines":[]}', 1, 0, now(),
      '2026-01-01'::timestamptz + n / 3 * interval '1 second', ${state},
      case when ${due} then '2026-01-01'::timestamptz + n / 3 * interval '1 second' end,
      case when ${!due} then '2026-01-01'::timestamptz + n / 3 * interval '1 second' end
    from generate_series(1, ${count}::integer) n`
})

/** The time by which a list is ordered. */
const timeOf = ({ due_at, finished_at, scheduled_for, state }: Task, organization: string | undefined) =>
  organization !== undefined || state === "completed" ? scheduled_for : (due_at ?? finished_at ?? "")

layer(services, { excludeTestServices: true })("OperatorStore.layer", (it) => {
  it.effect("counts the tasks of each state that is not done, and knows which is due first", () =>
    Effect.gen(function* () {
      const reads = yield* OperatorStore
      const counts = yield* reads.taskCounts
      assert.deepInclude(counts, { scheduled: 1, running: 1, dead: 1 })
      const running = yield* reads.task(owners.running, (yield* Tasks).running)
      assert.strictEqual(counts.oldest_due_at, Option.getOrThrow(running).due_at)
    })
  )

  it.effect("lists tasks by state and organization", () =>
    Effect.gen(function* () {
      const reads = yield* OperatorStore
      const tasks = yield* Tasks
      for (const state of State.literals) {
        const ofState = yield* reads.tasks({ state, organization: undefined }, undefined)
        assert.deepStrictEqual(idsOf(ofState), [tasks[state]])
        for (const organization of ["org_a", "org_b"]) {
          const found = yield* reads.tasks({ state, organization }, undefined)
          assert.deepStrictEqual(idsOf(found), owners[state] === organization ? [tasks[state]] : [])
        }
      }
      const all = yield* reads.tasks({ state: undefined, organization: undefined }, undefined)
      assert.deepStrictEqual(idsOf(all).toSorted(), Object.values(tasks).toSorted())
      const [dead] = (yield* reads.tasks({ state: "dead", organization: undefined }, undefined)).rows
      assert.deepInclude(dead, { idempotency_key: "dead", attempts: maximumAttempts, last_error: reason })
    })
  )

  it.effect("finds a task by its id, or the Idempotency-Key of its delivery, with its organization or without", () =>
    Effect.gen(function* () {
      const reads = yield* OperatorStore
      const { completed } = yield* Tasks
      for (const text of [completed, completed.toUpperCase(), "completed"]) {
        assert.deepStrictEqual(idsOf(yield* reads.findTasks(text, undefined)), [completed])
        assert.deepStrictEqual(idsOf(yield* reads.findTasks(text, "org_a")), [completed])
        assert.deepStrictEqual(idsOf(yield* reads.findTasks(text, "org_b")), [])
      }
      assert.deepStrictEqual(idsOf(yield* reads.findTasks("no such key", undefined)), [])
    })
  )

  it.effect("shows a task with what it names", () =>
    Effect.gen(function* () {
      const reads = yield* OperatorStore
      const { completed } = yield* Tasks
      const task = Option.getOrThrow(yield* reads.task("org_a", completed))
      assert.deepStrictEqual(task.invoices, [{ invoice_id: "invoice_completed", clinic_id: null, client_id: null }])
      assert.deepStrictEqual(task.invoice_lines, [
        { invoice_line_id: "line_completed", invoice_id: null, clinic_id: null }
      ])
      assert.deepStrictEqual(yield* reads.task("org_b", completed), Option.none())
      assert.deepStrictEqual(yield* reads.task("org_a", "no uuid"), Option.none())
    })
  )

  it.effect("writes down what is changed with who changed it, and only if it is changed", () =>
    Effect.gen(function* () {
      const { completed } = yield* Tasks
      const key = yield* Commands.createKey(alice, { organization: "org_audit", name: "k" })
      yield* Commands.revokeKey(alice, key.id)
      yield* Commands.revokeKey(alice, key.id)
      const secret = yield* Commands.addSecret(alice, "org_audit")
      yield* Commands.revokeSecret(alice, secret.id)
      yield* Commands.replayTask(alice, { id: completed, organization: undefined })
      const reads = yield* OperatorStore
      const { rows } = yield* reads.audit(undefined)
      const told = rows.map(({ action, actor, organization_id, result, source, target }) => ({
        actor,
        source,
        organization_id,
        action,
        target,
        result
      }))
      const by = { actor: "alice", source: "127.0.0.1" }
      const audited = { ...by, organization_id: "org_audit" }
      assert.deepStrictEqual(told, [
        {
          ...by,
          organization_id: "org_a",
          action: "task.replay",
          target: completed,
          result: "left as it is: completed"
        },
        { ...audited, action: "secret.revoke", target: secret.id, result: "revoked" },
        { ...audited, action: "secret.add", target: secret.id, result: "created" },
        { ...audited, action: "key.revoke", target: key.id, result: "revoked" },
        { ...audited, action: "key.create", target: key.id, result: "created" }
      ])
      const history = yield* reads.history("org_a", completed)
      assert.deepStrictEqual(
        history.map(({ action }) => action),
        ["task.replay"]
      )
    })
  )

  it.effect("lists keys without what would open anything", () =>
    Effect.gen(function* () {
      const { id } = yield* ApiKeys.create({ organization: "org_keys", name: "Warehouse" })
      const { rows } = yield* (yield* OperatorStore).keys("org_keys", undefined)
      assert.strictEqual(rows.length, 1)
      assert.deepInclude(rows[0], { id, name: "Warehouse", last_used_on: null, revoked_at: null })
      assert.notInclude(Object.keys(rows[0] ?? {}), "key_hash")
    })
  )

  it.effect("takes what is no place in a list as its beginning", () =>
    Effect.gen(function* () {
      const reads = yield* OperatorStore
      const dead = { state: "dead", organization: undefined } as const
      const expected = yield* reads.tasks(dead, undefined)
      const places = ["", "x", '["a"]', '["","",""]', '["2026-01-01 00:00:00+00","o","no uuid"]', '["now()","o","o"]']
      for (const place of places) {
        const text = Buffer.from(place).toString("base64url")
        assert.deepStrictEqual(yield* reads.tasks(dead, text), expected)
        yield* reads.audit(text)
        yield* reads.keys(undefined, text)
      }
    })
  )

  it.effect("tells each of many tasks once and in order, from page to page", () =>
    Effect.gen(function* () {
      const count = pageSize * 2 + 3
      for (const state of State.literals) {
        yield* many("org_many", state, count)
        const reads = yield* OperatorStore
        for (const organization of [undefined, "org_many"]) {
          const seen: Array<Task> = []
          let next: string | undefined
          do {
            const page = yield* reads.tasks({ state, organization }, next)
            seen.push(...page.rows)
            next = page.next
          } while (next !== undefined)
          assert.strictEqual(new Set(seen.map(({ id }) => id)).size, seen.length)
          const times = seen.map((task) => timeOf(task, organization))
          const isDueFirst = organization === undefined && (state === "scheduled" || state === "running")
          assert.deepStrictEqual(times, isDueFirst ? times.toSorted() : times.toSorted().toReversed())
          assert.strictEqual(seen.length, organization === undefined ? count + 1 : count)
        }
      }
    })
  )

  it.effect("replays a dead task once, and writes down each try", () =>
    Effect.gen(function* () {
      const reads = yield* OperatorStore
      const { dead } = yield* Tasks
      assert.deepStrictEqual(yield* reads.replay(alice, "org_b", dead), Replay.NotFound())
      assert.deepStrictEqual(yield* reads.replay(alice, "org_a", dead), Replay.Replayed({ organization: "org_a" }))
      const again = Replay.NotDead({ organization: "org_a", state: "scheduled" })
      assert.deepStrictEqual(yield* reads.replay(alice, "org_a", dead), again)
      const replayed = Option.getOrThrow(yield* reads.task("org_a", dead))
      assert.deepInclude(replayed, { state: "scheduled", attempts: 0, finished_at: null, last_error: reason })
      assert.sameMembers(
        (yield* reads.history("org_a", dead)).map(({ result }) => result),
        ["replayed", "left as it is: scheduled"]
      )
    })
  )
})

layer(services, { excludeTestServices: true })("OperatorStore.layer beside many tasks", (it) => {
  it.effect("shows the first items of a task that names many, and the beginning of long ids", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const reads = yield* OperatorStore
      const { completed } = yield* Tasks
      yield* sql
        .withTransaction(
          Effect.gen(function* () {
            yield* sql`
            update deletion_tasks set payload = jsonb_build_object('invoice_lines', '[]'::jsonb, 'invoices', (
              select jsonb_agg(jsonb_build_object('invoice_id', repeat('x', 1000) || n)) from generate_series(1, 500) n
            )) where id = ${completed}`
            const { invoices } = Option.getOrThrow(yield* reads.task("org_a", completed))
            assert.strictEqual(invoices.length, mostItems)
            assert.strictEqual(invoices[0]?.["invoice_id"]?.length, 200)
            return yield* Effect.fail("undone" as const)
          })
        )
        .pipe(
          Effect.catchIf(
            (error) => error === "undone",
            () => Effect.void
          )
        )
    })
  )

  it.effect("changes nothing that cannot be written down", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const before = yield* ApiKeys.list("org_refused")
      yield* sql`alter table audit_log add constraint refused check (organization_id <> 'org_refused')`
      yield* Effect.flip(Commands.createKey(alice, { organization: "org_refused", name: "k" }))
      yield* sql`alter table audit_log drop constraint refused`
      assert.deepStrictEqual(yield* ApiKeys.list("org_refused"), before)
    })
  )

  it.effect("finds the deletions of a registered organization among those of a thousand that are made up", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const reads = yield* OperatorStore
      const id = taskIdOf("org_registered", "many 1")
      yield* sql`insert into organizations (organization_id, id) values ('org_registered', 'org_registered')`
      yield* many("org_registered", "completed", 1)
      yield* sql`
        update deletion_tasks set id = ${id}, scheduled_for = '2030-01-01' where organization_id = 'org_registered'`
      yield* sql`
        insert into deletion_tasks (organization_id, id, idempotency_key, fingerprint, payload, invoices_count,
          invoice_lines_count, received_at, scheduled_for, state, finished_at)
        select 'aaa_' || n, gen_random_uuid(), 'made up', '', '{}', 1, 0, now(), '2020-01-01', 'completed', now()
        from generate_series(1, ${mostOrganizations}::integer) n`
      const found = yield* reads.findTasks("many 1", undefined)
      assert.deepStrictEqual([idsOf(found), found.isPartial], [[id], true])
      for (const state of [undefined, "completed"] as const) {
        assert.strictEqual(idsOf(yield* reads.tasks({ state, organization: undefined }, undefined))[0], id)
      }
    })
  )

  it.effect("says what the database role of the process may not do, and does the rest", () =>
    Effect.gen(function* () {
      const { sql: admin, url } = yield* TestDatabase
      const { dead } = yield* Tasks
      yield* ApiKeys.create({ organization: "org_keys", name: "Warehouse" })
      const name = `operator_${process.pid}`
      yield* Effect.acquireRelease(
        admin.unsafe(`create role ${name} login password 'secret' in role practice_data_api`),
        () => Effect.orDie(admin.unsafe(`drop role ${name}`))
      )
      const sql = yield* connect({
        url: Redacted.make(Object.assign(new URL(url), { username: name, password: "secret" }).href),
        applicationName: "practice-data-test",
        maxConnections: 2,
        statementTimeout: "1 minute"
      })
      const reads = yield* Effect.provide(
        OperatorStore,
        Layer.fresh(OperatorStore.layer).pipe(Layer.provide(layerShared(sql)))
      )
      assert.isNotEmpty((yield* reads.keys(undefined, undefined)).rows)
      for (const read of [
        Effect.asVoid(reads.tasks({ state: "dead", organization: undefined }, undefined)),
        Effect.asVoid(reads.task("org_a", dead)),
        Effect.asVoid(reads.replay(alice, "org_a", dead))
      ]) {
        assert.include((yield* Effect.flip(read)).message, "may not do this in the task store")
      }
    }).pipe(Effect.scoped, Effect.provide(Reactivity.layer))
  )

  it.effect("says what holds the changes back", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const reads = yield* OperatorStore
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`select pg_current_xact_id()::text`
          assert.isNotEmpty(yield* reads.holders)
        })
      )
    })
  )
})
