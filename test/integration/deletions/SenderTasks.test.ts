/** Reading the deletion tasks of an organization, from both stores. */
import { assert, layer } from "@effect/vitest"
import { Array, DateTime, Effect, Layer, Result, Schema, Struct } from "effect"
import { CurrentOrganization } from "../../../src/api/Authorization.ts"
import { DeletionTask, State } from "../../../src/api/DeletionTasks.ts"
import { TaskNotFound, type TaskStoreDown, type Unauthorized } from "../../../src/api/Errors.ts"
import * as Instant from "../../../src/api/records/Instant.ts"
import { makeTaskId } from "../../../src/deletions/Delivery.ts"
import { type Criteria, type OwnedTask, SenderTasks } from "../../../src/deletions/SenderTasks.ts"
import { readsOf, TestDatabase } from "../../support/TestDatabase.ts"
import { addFacts, addTasks, outcomeOf } from "../../support/deletions/invoiceFixture.ts"
import { compact } from "../../support/inProcess.ts"
import { asKnown } from "../records/stores.ts"
import { delay, onDatabase } from "../../support/deletions/tasks.ts"

const at = (second: number) => DateTime.makeUnsafe(Date.UTC(2026, 0, 31, 9, 30, second))

const outcome = outcomeOf({ invoices: { deleted: 1, clinic_mismatch: 2 }, lines_of_invoices: 3 })

/** A task of a key; by default one that waits for its time. */
const taskOf = (key: string, changes: Partial<OwnedTask> = {}): OwnedTask => {
  const { organization_id = "org_a", scheduled_for = at(0) } = changes
  return {
    organization_id,
    task_id: makeTaskId(organization_id, key),
    idempotency_key: key,
    state: "scheduled",
    received_at: DateTime.subtractDuration(scheduled_for, delay),
    scheduled_for,
    started_at: null,
    finished_at: null,
    attempts: 0,
    invoices_count: 3,
    invoice_lines_count: 0,
    outcome: null,
    remembered: 0,
    ...changes
  }
}

const started = { started_at: at(1), attempts: 2 } as const

/** One of each state, ties of all states at one time, and tasks of another organization between them. */
const tasks: ReadonlyArray<OwnedTask> = [
  taskOf("waits", { scheduled_for: at(50) }),
  taskOf("retries", { scheduled_for: at(20), ...started }),
  taskOf("runs", { scheduled_for: at(10), state: "running", ...started }),
  taskOf("done", {
    scheduled_for: at(40),
    state: "completed",
    ...started,
    finished_at: at(42),
    outcome,
    remembered: 2
  }),
  taskOf("died", { scheduled_for: at(30), state: "dead", ...started, attempts: 8, finished_at: at(43) }),
  ...Array.makeBy(12, (n) =>
    taskOf(`tie ${n}`, { scheduled_for: at(35), state: State.literals[n % State.literals.length] ?? "dead" })
  ),
  taskOf("waits", { organization_id: "org_b", scheduled_for: at(35) }),
  taskOf("theirs", { organization_id: "org_b", scheduled_for: at(20), state: "completed", outcome })
]

const encode = Schema.encodeEffect(DeletionTask)

const fill = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  yield* sql`truncate deletion_tasks, deletions`
  for (const { organization_id, ...task } of tasks) {
    const { outcome: counts, remembered, task_id: id, ...row } = yield* Effect.orDie(encode(task))
    const more = { fingerprint: new Uint8Array([1]), payload: "{}", outcome: counts && (yield* compact(counts)) }
    yield* sql`insert into deletion_tasks ${sql.insert({ organization_id, id, ...row, ...more })}`
    // Beside those that are remembered: one that was found, and one that was undone.
    if (remembered === 0) continue
    const verdict = "case n when 1 then 'deleted' else 'not_found' end"
    yield* addFacts(remembered + 2, { task_id: `'${id}'`, verdict, undone_at: "case n when 2 then now() end" })
  }
  // Reads cut microseconds off.
  yield* sql`update deletion_tasks set finished_at = (finished_at at time zone 'UTC' + interval '999 microseconds') at time zone 'UTC'`
})

const page = { limit: 100, offset: 0 }

const search = (criteria: Criteria = {}, bounds: Partial<typeof page> = {}) =>
  Effect.flatMap(SenderTasks, (reads) => reads.search(criteria, { ...page, ...bounds }))

const get = (taskId: string) => Effect.flatMap(SenderTasks, (reads) => reads.get(taskId))

const keysOf = (found: ReadonlyArray<{ readonly idempotency_key: string }>) => found.map((task) => task.idempotency_key)

/** The tasks of an organization in the order of a search, by another way than the stores'. */
const expected = (organization = "org_a") =>
  tasks
    .filter((task) => task.organization_id === organization)
    .map((task) => Struct.omit(task, ["organization_id"]))
    .toSorted((one, other) => {
      const [a, b] = [one, other].map((task) => `${DateTime.formatIso(task.scheduled_for)} ${task.task_id}`)
      return (a ?? "") < (b ?? "") ? -1 : 1
    })

const since = (second: number, micros = 0n) => Instant.fromMillis(DateTime.toEpochMillis(at(second))) + micros

type Failure = Unauthorized | TaskNotFound | TaskStoreDown

const rules: Readonly<Record<string, Effect.Effect<void, Failure, SenderTasks | CurrentOrganization>>> = {
  "a search returns the organization's tasks, whole, by their time and then by id": Effect.gen(function* () {
    assert.deepStrictEqual(yield* search(), expected())
    assert.deepStrictEqual(yield* asKnown("org_b")(search()), expected("org_b"))
    assert.isEmpty(yield* asKnown("org_c")(search()))
  }),
  "pages of any size, one after the other, are the whole, each task once": Effect.gen(function* () {
    for (const limit of [1, 2, 3, 7, 16, 1000]) {
      const pages = yield* Effect.forEach(Array.range(0, Math.ceil(expected().length / limit)), (n) =>
        search({}, { limit, offset: n * limit })
      )
      assert.deepStrictEqual(pages.flat(), expected(), `pages of ${limit}`)
    }
  }),
  "a search by a state returns the tasks in it, and none for an unknown one": Effect.gen(function* () {
    for (const state of [...State.literals, "Dead", ""]) {
      const wanted = expected().filter((task) => task.state === state)
      assert.deepStrictEqual(yield* search({ state }), wanted)
      assert.deepStrictEqual(yield* search({ state }, { limit: 2, offset: 1 }), wanted.slice(1, 3))
    }
  }),
  "scheduled since a time is at or after it, to the microsecond": Effect.gen(function* () {
    const keys = keysOf(yield* search({ scheduledSince: since(40) }))
    assert.deepStrictEqual(keys, ["done", "waits"])
    assert.deepStrictEqual(keysOf(yield* search({ scheduledSince: since(40, 1n) })), ["waits"])
    assert.deepStrictEqual(keysOf(yield* search({ scheduledSince: since(40), state: "completed" })), ["done"])
    assert.isEmpty(yield* search({ scheduledSince: since(50, 1n) }))
    assert.lengthOf(yield* search({ scheduledSince: Instant.fromMillis(0) }), expected().length)
  }),
  "a task is found by its id in any case, and none by any other id": Effect.gen(function* () {
    for (const task of expected()) {
      assert.deepStrictEqual(yield* get(task.task_id), task)
      assert.deepStrictEqual(yield* get(task.task_id.toUpperCase()), task)
    }
    const id = makeTaskId("org_a", "waits")
    const others = [makeTaskId("org_b", "waits"), makeTaskId("org_a", "none")]
    for (const each of [...others, "", `{${id}}`, ` ${id}`, `${id}0`, "é".repeat(36)])
      assert.deepStrictEqual(yield* Effect.result(get(each)), Result.fail(new TaskNotFound()), each)
  })
}

layer(TestDatabase.layerDatabases, onDatabase)("reads of tasks", (it) => {
  for (const [store, reads] of [
    ["in memory", SenderTasks.layerMemory(tasks)],
    ["over Postgres", Layer.unwrap(Effect.as(fill, SenderTasks.layer))]
  ] as const)
    it.effect.each(Object.entries(rules))(`%s (${store})`, ([, check]) =>
      Effect.provide(asKnown("org_a")(check), Layer.fresh(reads))
    )

  const rows = 6000

  /** Adds tasks of organizations, the SQL of whose name is given: one in 3,000 is dead, all others are completed. */
  const add = (organization_id: string) =>
    addTasks(rows, {
      organization_id,
      scheduled_for: "'2026-01-01'::timestamptz + n / 10 * interval '1 second'",
      state: "case n % 3000 when 0 then 'dead' else 'completed' end"
    })

  /** Tasks of many small organizations, and of a large one, which was small when they were analyzed. */
  const many = Effect.gen(function* () {
    const { sql } = yield* TestDatabase
    yield* sql`truncate deletion_tasks`
    yield* add("'org_' || n % 500")
    yield* sql`analyze deletion_tasks`
    yield* add("'org_a'")
    return sql
  })

  const last = Instant.fromMillis(Date.UTC(2026, 0, 1) + (rows / 10) * 1000)

  const readLittle = Effect.gen(function* () {
    for (const [reading, most] of [
      [search(), 210],
      [search({}, { limit: 1000 }), 2010],
      [search({}, { offset: 5000 }), 5210],
      [search({ state: "dead" }), 20],
      [search({ state: "scheduled" }), 10],
      [search({ scheduledSince: last }), 30],
      [search({ scheduledSince: Instant.fromMillis(0) }), 210],
      [asKnown("org_b")(search()), 0]
    ] as const)
      assert.isAtMost((yield* readsOf("deletion_tasks", reading)).rows, most)
    const unknown = Effect.flip(get(makeTaskId("org_a", "none")))
    assert.isAtMost((yield* readsOf("deletion_tasks", unknown)).rows, 1)
  })

  it.effect("read little more than they return, grown since they were analyzed, and analyzed again", () =>
    Effect.gen(function* () {
      const sql = yield* many
      yield* readLittle
      yield* sql`vacuum analyze deletion_tasks`
      yield* readLittle
    }).pipe(asKnown("org_a"), Effect.provide(SenderTasks.layer))
  )
})
