/** The endpoints of deletion tasks, over fakes. */
import { assert, it as test, layer } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { TaskIdRequired, TaskNotFound, TaskStoreDown } from "../../../src/api/Errors.ts"
import { demoTask } from "../../../src/app/demo/Load.ts"
import { type OwnedTask, SenderTasks } from "../../../src/deletions/SenderTasks.ts"
import { expectAnswer, InProcess, layerDemo, organization, send } from "../../support/inProcess.ts"
import { outcomeOf } from "../../support/deletions/invoiceFixture.ts"

const at = (time: string) => DateTime.makeUnsafe(`2026-01-31T${time}Z`)

const completed: OwnedTask = {
  ...demoTask({ slug: "oakridge" }),
  received_at: at("09:30:00"),
  scheduled_for: at("09:31:00.001"),
  started_at: at("09:31:00.010"),
  finished_at: at("09:31:00.100"),
  invoices_count: 3,
  invoice_lines_count: 2,
  outcome: outcomeOf({
    invoices: { deleted: 1, clinic_mismatch: 1, not_found: 1 },
    invoice_lines: { invoice_mismatch: 2 },
    lines_of_invoices: 4
  }),
  remembered: 1
}
const { idempotency_key, task_id } = completed

const theirs = { ...demoTask({ slug: "harbor" }), idempotency_key: "theirs" }

/** The completed task as clients get it, byte by byte. */
const completedJson =
  `{"task_id":"${task_id}","idempotency_key":"${idempotency_key}","state":"completed",` +
  `"received_at":"2026-01-31T09:30:00.000Z","scheduled_for":"2026-01-31T09:31:00.001Z",` +
  `"started_at":"2026-01-31T09:31:00.010Z","finished_at":"2026-01-31T09:31:00.100Z",` +
  `"attempts":1,"invoices_count":3,"invoice_lines_count":2,` +
  `"outcome":{"invoices":{"deleted":1,"not_found":1,"clinic_mismatch":1,"client_mismatch":0},` +
  `"invoice_lines":{"deleted":0,"not_found":0,"invoice_mismatch":2,"clinic_mismatch":0},"lines_of_invoices":4},"remembered":1}`

const search = "/api/v3/invoice-deletions/search"
const get = "/api/v3/invoice-deletions/get"

layer(InProcess.layer(Layer.merge(layerDemo, SenderTasks.layerMemory([theirs, completed]))))(
  "the endpoints of deletion tasks",
  (it) => {
    it.effect("return a task with times in UTC and milliseconds", () =>
      Effect.gen(function* () {
        for (const request of [{ task_id }, { idempotency_key, task_id: null }]) {
          const answer = yield* send({ path: get, json: { ...request, organization } })
          assert.deepStrictEqual([answer.status, answer.text], [200, completedJson])
          assert.strictEqual(answer.headers["content-type"], "application/json")
        }
      })
    )

    it.effect("search tasks by their state, and by the time that they are scheduled for", () =>
      Effect.gen(function* () {
        for (const [json, found] of [
          [{}, completedJson],
          [{ state: "completed", scheduled_since: "2026-01-31T09:31:00.001" }, completedJson],
          [{ scheduled_since: "2026-01-31T09:31:00.0010001" }, ""],
          [{ state: "Completed" }, ""],
          [{ offset: 1 }, ""]
        ] as const)
          assert.strictEqual((yield* send({ path: search, json })).text, `{"body":[${found}]}`)
      })
    )

    it.effect.each([
      ["neither an id nor a key", {}, 400, new TaskIdRequired()],
      ["both", { task_id, idempotency_key }, 400, new TaskIdRequired()],
      ["a blank key", { task_id: null, idempotency_key: "\u00a0 " }, 400, new TaskIdRequired()],
      ["another organization's key", { idempotency_key: theirs.idempotency_key }, 404, new TaskNotFound()],
      ["an id that is no UUID", { task_id: `${task_id} ` }, 404, new TaskNotFound()],
      ["an unknown key", { idempotency_key: idempotency_key.toUpperCase() }, 404, new TaskNotFound()]
    ] as const)("need an id or a key of a task: %s is refused", ([, json, status, { detail }]) =>
      Effect.map(expectAnswer({ path: get, json }, status, { detail }), ({ headers }) =>
        assert.isUndefined(headers["retry-after"])
      )
    )
  }
)

const error = TaskStoreDown.from({ _tag: "Busy" })
const fail = () => Effect.fail(error)
const down = Layer.succeed(SenderTasks, SenderTasks.of({ search: fail, get: fail }))

test.effect("while the task store is busy, the endpoints of tasks are 503, and refuse what is not valid", () =>
  Effect.gen(function* () {
    const json = { idempotency_key: "k" }
    for (const sent of [{ path: search }, { path: get, json }]) {
      const { headers } = yield* expectAnswer(sent, 503, { detail: error.detail })
      assert.strictEqual(headers["retry-after"], "1")
    }
    assert.strictEqual((yield* send({ path: get, json: { ...json, task_id: "t" } })).status, 400)
  }).pipe(Effect.provide(InProcess.layer(Layer.merge(layerDemo, down))))
)
