/** The endpoints of deletion tasks over fakes: what they show, and what they refuse. All of it was decided. */
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { TaskIdRequired, TaskNotFound, TaskStoreDown } from "../../../src/api/Errors.ts"
import { taskIdOf } from "../../../src/deletions/Delivery.ts"
import { type OwnedTask, TaskReads } from "../../../src/deletions/TaskReads.ts"
import { InProcess, layerDemo, organization, other, send, taskPaths } from "../../http/inProcess.ts"
import { services, store } from "../../http/postgres.ts"
import { outcomeOf } from "../../support/deletions/invoiceFixture.ts"

const at = (time: string) => DateTime.makeUnsafe(`2026-01-31T${time}Z`)

const completed: OwnedTask = {
  organization_id: organization,
  task_id: taskIdOf(organization, "delivery-1"),
  idempotency_key: "delivery-1",
  state: "completed",
  received_at: at("09:30:00"),
  scheduled_for: at("09:31:00.001"),
  started_at: at("09:31:00.010"),
  finished_at: at("09:31:00.100"),
  attempts: 1,
  invoices_count: 3,
  invoice_lines_count: 2,
  outcome: outcomeOf({
    invoices: { deleted: 1, clinic_mismatch: 1, not_found: 1 },
    invoice_lines: { invoice_mismatch: 2 },
    lines_of_invoices: 4
  })
}

const scheduled: OwnedTask = {
  ...completed,
  task_id: taskIdOf(organization, "delivery-2"),
  idempotency_key: "delivery-2",
  state: "scheduled",
  scheduled_for: at("10:00:00"),
  started_at: null,
  finished_at: null,
  attempts: 0,
  outcome: null
}

const theirs: OwnedTask = {
  ...scheduled,
  organization_id: other.organization,
  task_id: taskIdOf(other.organization, "delivery-3"),
  idempotency_key: "delivery-3"
}

/** The completed task as clients get it, byte by byte. */
const json =
  `{"task_id":"${completed.task_id}","idempotency_key":"delivery-1","state":"completed",` +
  `"received_at":"2026-01-31T09:30:00.000Z","scheduled_for":"2026-01-31T09:31:00.001Z",` +
  `"started_at":"2026-01-31T09:31:00.010Z","finished_at":"2026-01-31T09:31:00.100Z",` +
  `"attempts":1,"invoices_count":3,"invoice_lines_count":2,` +
  `"outcome":{"invoices":{"deleted":1,"not_found":1,"clinic_mismatch":1,"client_mismatch":0},` +
  `"invoice_lines":{"deleted":0,"not_found":0,"invoice_mismatch":2,"clinic_mismatch":0},"lines_of_invoices":4}}`

const [search = "", get = ""] = taskPaths

const keysOf = (text: string) => [...text.matchAll(/"idempotency_key":"([^"]*)"/g)].map(([, key]) => key)

const refusals: ReadonlyArray<readonly [what: string, request: unknown]> = [
  ["neither", {}],
  ["null for both", { task_id: null, idempotency_key: null }],
  ["both", { task_id: completed.task_id, idempotency_key: "delivery-1" }],
  ["both, one of them blank", { task_id: completed.task_id, idempotency_key: "" }],
  ["both blank", { task_id: " ", idempotency_key: " " }],
  ["an empty id", { task_id: "" }],
  ["a blank id", { task_id: " \t\n" }],
  ["an empty key", { idempotency_key: "" }],
  ["a blank key", { task_id: null, idempotency_key: "\u00a0 " }]
]

layer(InProcess.layer(Layer.merge(layerDemo, TaskReads.layerMemory([scheduled, theirs, completed]))))(
  "the endpoints of deletion tasks",
  (it) => {
    it.effect("show a task whole, with the names of its receipt, the times in UTC with milliseconds", () =>
      Effect.gen(function* () {
        for (const request of [{ task_id: completed.task_id }, { idempotency_key: "delivery-1", task_id: null }]) {
          const answer = yield* send({ path: get, json: { ...request, organization } })
          assert.deepStrictEqual([answer.status, answer.text], [200, json])
          assert.strictEqual(answer.headers["content-type"], "application/json")
        }
      })
    )

    it.effect("show a task that has not run with null for what is not there yet", () =>
      Effect.gen(function* () {
        const { text } = yield* send({ path: get, json: { idempotency_key: "delivery-2" } })
        assert.include(text, `"started_at":null,"finished_at":null,"attempts":0,`)
        assert.match(text, /"outcome":null\}$/)
      })
    )

    it.effect("list the organization's own tasks, oldest first, those that a request asks for", () =>
      Effect.gen(function* () {
        const all = yield* send({ path: search })
        assert.isTrue(all.text.startsWith(`{"body":[${json},{"task_id":`))
        const found = (request: unknown) =>
          Effect.map(send({ path: search, json: request }), ({ status, text }) => [status, keysOf(text)])
        const both = ["delivery-1", "delivery-2"]
        assert.deepStrictEqual(yield* found({}), [200, both])
        assert.deepStrictEqual(yield* found({ state: null, scheduled_since: null, limit: null, offset: null }), [
          200,
          both
        ])
        assert.deepStrictEqual(yield* found({ limit: 1 }), [200, ["delivery-1"]])
        assert.deepStrictEqual(yield* found({ offset: 1 }), [200, ["delivery-2"]])
        assert.deepStrictEqual(yield* found({ state: "completed" }), [200, ["delivery-1"]])
        assert.deepStrictEqual(yield* found({ scheduled_since: "2026-01-31T09:31:00.001" }), [200, both])
        assert.deepStrictEqual(yield* found({ scheduled_since: "2026-01-31T09:31:00.0010001" }), [200, ["delivery-2"]])
        for (const state of ["Completed", "done", "", " completed"]) {
          assert.deepStrictEqual(yield* found({ state }), [200, []])
        }
      })
    )

    it.effect.each(refusals)("are asked for one task by its id or its key: with %s it is 400", ([, request]) =>
      Effect.gen(function* () {
        const answer = yield* send({ path: get, json: request })
        assert.deepStrictEqual([answer.status, answer.json], [400, { detail: new TaskIdRequired().detail }])
      })
    )

    it.effect("say the same of another organization's task, of none, and of an id that can be none's: 404", () =>
      Effect.gen(function* () {
        const requests = [
          { task_id: theirs.task_id },
          { idempotency_key: theirs.idempotency_key },
          { task_id: taskIdOf(organization, "none") },
          { idempotency_key: "none" },
          ...["none", "1", `{${completed.task_id}}`, `${completed.task_id} `].map((task_id) => ({ task_id })),
          ...["k".repeat(10_000), "delivery-1 ", "DELIVERY-1", "\u{1f436}"].map((idempotency_key) => ({
            idempotency_key
          }))
        ]
        for (const request of requests) {
          const answer = yield* send({ path: get, json: request })
          assert.deepStrictEqual([answer.status, answer.json], [404, { detail: new TaskNotFound().detail }])
        }
        const { headers } = yield* send({ path: get, json: { task_id: theirs.task_id } })
        const known = { authorization: `Bearer ${other.key}` }
        const own = yield* send({ path: get, json: { task_id: theirs.task_id }, headers: known })
        assert.deepStrictEqual([own.status, keysOf(own.text)], [200, ["delivery-3"]])
        assert.isUndefined(headers["retry-after"])
      })
    )
  }
)

const down = (error: TaskStoreDown) =>
  Layer.merge(
    layerDemo,
    Layer.succeed(TaskReads, TaskReads.of({ search: () => Effect.fail(error), get: () => Effect.fail(error) }))
  )

for (const error of [new TaskStoreDown(), TaskStoreDown.from({ _tag: "Busy" })]) {
  layer(InProcess.layer(down(error)))(`while ${error.detail.toLowerCase()}, the endpoints of tasks`, (it) => {
    it.effect.each(taskPaths)("are 503, which names the store, with Retry-After: %s", (path) =>
      Effect.gen(function* () {
        const answer = yield* send({ path, json: path === get ? { idempotency_key: "k" } : {} })
        assert.deepStrictEqual([answer.status, answer.json], [503, { detail: error.detail }])
        assert.strictEqual(answer.headers["retry-after"], "1")
      })
    )

    it.effect("refuse what they would refuse anyway", () =>
      Effect.gen(function* () {
        assert.strictEqual((yield* send({ path: get })).status, 400)
        assert.strictEqual((yield* send({ path: search, json: { limit: 0 } })).status, 400)
        assert.strictEqual((yield* send({ path: search, json: { status: "dead" } })).status, 422)
      })
    )
  })
}

layer(InProcess.layer(Layer.orDie(services.pipe(Layer.provide(store)))), { excludeTestServices: true })(
  "the endpoints of deletion tasks over Postgres",
  (it) => {
    it.effect.each(taskPaths)("look the key up first: %s", (path) =>
      Effect.gen(function* () {
        const headers = { authorization: "Bearer pda_live_unknown" }
        assert.strictEqual((yield* send({ path, headers, json: { idempotency_key: "k" } })).status, 401)
      })
    )

    it.effect("find nothing where nothing was delivered", () =>
      Effect.gen(function* () {
        assert.strictEqual((yield* send({ path: search, json: { state: "dead" } })).text, `{"body":[]}`)
        assert.strictEqual((yield* send({ path: get, json: { idempotency_key: "k" } })).status, 404)
        assert.strictEqual((yield* send({ path: search, json: { offset: 2147483647, limit: 1000 } })).status, 200)
      })
    )
  }
)
