/** Every verb of the client, through the handlers of the service. `Generated.test.ts` has that each resource has its verbs. */
import { assert, layer } from "@effect/vitest"
import { DateTime, Layer } from "effect"
import { NotFoundError } from "../../../src/client/index.ts"
import { taskIdOf } from "../../../src/deletions/Delivery.ts"
import { SenderTasks } from "../../../src/deletions/SenderTasks.ts"
import { organizations } from "../../../src/demo/DemoData.ts"
import { accounts } from "../../../src/demo/DemoProcessor.ts"
import { taskOf } from "../../../src/demo/Load.ts"
import { demo, InProcess, layerDemo, organization, other } from "../../support/inProcess.ts"
import { clientOf, collect, failureOf, idOf, over } from "./support.ts"

const [oakridge] = organizations

const tasks = Array.from({ length: 5 }, (_, number) => ({
  ...taskOf(oakridge),
  task_id: taskIdOf(organization, `delivery-${number}`),
  idempotency_key: `delivery-${number}`,
  scheduled_for: DateTime.makeUnsafe(Date.UTC(2026, 0, 1, 0, number))
}))

const server = InProcess.layer(Layer.merge(layerDemo, SenderTasks.layerMemory(tasks)))

const stored: Readonly<Record<string, ReadonlyArray<{ readonly id: string }>>> = demo
const live: Readonly<Record<string, ReadonlyArray<{ readonly id: string }>>> = Object.values(accounts)[0] ?? {}
const clinic = "clinic_oakridge_01"

const failing = (): never => {
  throw new Error("The resource has no such verb")
}

layer(server, { excludeTestServices: true })("the client", (it) => {
  const copied = ["charges", "clinics", "consumption-logs"].map((name) => ({ name }))
  it.effect.each(copied)("searches, walks, gets and copies $name", ({ name }) =>
    over(async ({ fetch }) => {
      const { all, changes, get, search } = clientOf(fetch).resource(name)
      const walked = (await collect(all?.({}, { pageSize: 100 }) ?? failing())).map(idOf)
      assert.deepStrictEqual((await search?.({ limit: 1000 }))?.map(idOf), walked)
      assert.strictEqual((await get?.(String(walked[0])))?.["id"], walked[0])
      const pages = await collect(changes?.(undefined, { limit: 100 }) ?? failing())
      // Changes have deleted records, which a search leaves out.
      const changed = pages.flatMap(({ body }) => body.map(idOf))
      assert.sameMembers(changed, stored[name]?.map(idOf) ?? [])
      assert.includeMembers(changed, walked)
    })
  )

  it.effect("reads and walks objects of the processor", () =>
    over(async ({ fetch }) => {
      const { all, search } = clientOf(fetch).resource("psp-charges")
      const walked = await collect(all?.({ clinic }, { pageSize: 50 }) ?? failing())
      assert.isNotEmpty(walked)
      assert.sameMembers(walked.map(idOf), live["charges"]?.map(idOf) ?? [])
      assert.deepStrictEqual(await search?.({ clinic, limit: 5 }), walked.slice(0, 5))
    })
  )

  it.effect("reads the organization, and the outcomes of deliveries", () =>
    over(async ({ fetch }) => {
      const client = clientOf(fetch)
      assert.strictEqual((await client.organization.get()).id, organization)
      const task = await client.invoiceDeletions.get({ idempotency_key: "delivery-4" })
      assert.strictEqual(task.task_id, tasks[4]?.task_id)
      assert.deepStrictEqual<object | undefined>(await client.resource("invoice-deletions").get?.(task.task_id), task)
      const walked = await collect(client.invoiceDeletions.all({ state: "completed" }, { pageSize: 2 }))
      for (const [index, { task_id }] of walked.entries()) assert.strictEqual(task_id, tasks[index]?.task_id)
      assert.strictEqual(walked.length, tasks.length)
    })
  )

  it.effect("sends filters and dates as they are, and reads the organization of its key only", () =>
    over(async ({ fetch, sent }) => {
      const { charges } = clientOf(fetch)
      const [open] = await charges.search({ status: "open", limit: 1, created_at_since: new Date(0) })
      const body = '{"status":"open","limit":1,"created_at_since":"1970-01-01T00:00:00.000Z"}'
      assert.deepStrictEqual([open?.status, sent.at(-1)?.body], ["open", body])
      const stranger = clientOf(fetch, { apiKey: other.key })
      assert.instanceOf(await failureOf(stranger.charges.get(open?.id ?? "")), NotFoundError)
      assert.throws(() => stranger.resource("chargers"), 'There is no resource "chargers"')
    })
  )
})
