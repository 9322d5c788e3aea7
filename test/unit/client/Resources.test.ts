/** Every resource and verb of the client, through the handlers of the service. */
import { assert, it as test, layer } from "@effect/vitest"
import { DateTime, Effect, Layer, Schema } from "effect"
import { NotFoundError, PracticeData, resources } from "../../../src/client/index.ts"
import { taskIdOf } from "../../../src/deletions/Delivery.ts"
import { TaskReads } from "../../../src/deletions/TaskReads.ts"
import { accounts } from "../../../src/demo/DemoProcessor.ts"
import { InProcess, key, layerDemo, organization, other, send } from "../../http/inProcess.ts"
import { baseUrl, collect, failureOf, idOf, over } from "./support.ts"

const at = (minute: number) => DateTime.makeUnsafe(Date.UTC(2026, 0, 1, 0, minute))

const taskOf = (number: number) => ({
  organization_id: organization,
  task_id: taskIdOf(organization, `delivery-${number}`),
  idempotency_key: `delivery-${number}`,
  state: "scheduled" as const,
  received_at: at(0),
  scheduled_for: at(Math.floor(number / 3)),
  started_at: null,
  finished_at: null,
  attempts: 0,
  invoices_count: 1,
  invoice_lines_count: 0,
  outcome: null
})

const tasks = Array.from({ length: 10 }, (_, index) => taskOf(index)).toSorted(
  (a, b) => DateTime.Order(a.scheduled_for, b.scheduled_for) || (a.task_id < b.task_id ? -1 : 1)
)

const server = InProcess.layer(Layer.merge(layerDemo, TaskReads.layerMemory(tasks)))

const Page = Schema.Struct({ body: Schema.Array(Schema.Struct({ id: Schema.String })) })

/** The ids of all records, asked for without the client. */
const idsOf = (name: string) =>
  Effect.gen(function* () {
    const { json } = yield* send({ path: `/api/v3/${name}/search`, json: { limit: 1000 } })
    const page = yield* Schema.decodeUnknownEffect(Page)(json)
    return page.body.map(({ id }) => id)
  })

const clientOf = (fetch: ConstructorParameters<typeof PracticeData>[0]["fetch"]) =>
  new PracticeData({ baseUrl, apiKey: key, fetch })

const changing = resources.filter(({ verbs }) => verbs.includes("changes"))
const live = resources.filter(({ live: isLive }) => isLive === true)

layer(server, { excludeTestServices: true })("the client", (it) => {
  it.effect.each(changing)("searches, walks, gets and follows $name", ({ name }) =>
    Effect.gen(function* () {
      const ids = yield* idsOf(name)
      yield* over(async ({ fetch }) => {
        const { all, changes, get, search } = clientOf(fetch).resource(name)
        assert.isDefined(search)
        assert.deepStrictEqual((await search?.({ limit: 2 }))?.map(idOf), ids.slice(0, 2))
        const walked = all === undefined ? [] : await collect(all({}, { pageSize: 100 }))
        assert.deepStrictEqual(walked.map(idOf), ids)
        const [first] = ids
        assert.strictEqual((await get?.(first))?.["id"], first)
        const pages = changes === undefined ? [] : await collect(changes(undefined, { limit: 100 }))
        const changed = pages.flatMap(({ body }) => body.map(idOf))
        // Changes tell of marked records, which a search leaves out.
        assert.includeMembers(changed, ids)
        assert.deepStrictEqual(
          pages.map(({ has_more }) => has_more),
          pages.map((_, index) => index < pages.length - 1)
        )
      })
    })
  )

  it.effect.each(live)("reads and walks $name", ({ name }) =>
    over(async ({ fetch }) => {
      const { all, search } = clientOf(fetch).resource(name)
      const clinic = "clinic_oakridge_01"
      const walked = all === undefined ? [] : await collect(all({ clinic }, { pageSize: 50 }))
      const objects = Object.values(accounts)[0] ?? {}
      const stored = Object.entries(objects).find(([kind]) => `psp-${kind}` === name)?.[1] ?? []
      assert.isNotEmpty(stored)
      assert.sameMembers(
        walked.map(({ id }) => id),
        stored.map(({ id }) => id)
      )
      assert.deepStrictEqual(await search?.({ clinic, limit: 5 }), walked.slice(0, 5))
    })
  )

  it.effect("reads the organization, what became of deliveries, and pages of the processor", () =>
    over(async ({ fetch }) => {
      const client = clientOf(fetch)
      assert.strictEqual((await client.organization.get()).id, organization)
      const found = await client.invoiceDeletions.get({ idempotency_key: "delivery-4" })
      assert.strictEqual(found.task_id, taskIdOf(organization, "delivery-4"))
      assert.strictEqual(
        (await client.resource("invoice-deletions").get?.(found.task_id))?.["idempotency_key"],
        "delivery-4"
      )
      const walked = await collect(client.invoiceDeletions.all({ state: "scheduled" }, { pageSize: 2 }))
      assert.deepStrictEqual(
        walked.map(({ task_id }) => task_id),
        tasks.map(({ task_id }) => task_id)
      )
      const { data, has_more } = await client.psp.balanceTransactions.search({ clinic: "clinic_oakridge_01", limit: 1 })
      assert.strictEqual(data.length, 1)
      assert.isTrue(has_more)
    })
  )

  it.effect("is typed: records, filters, dates", () =>
    over(async ({ fetch, sent }) => {
      const client = clientOf(fetch)
      const open = await client.charges.search({ status: "open", limit: 1, created_at_since: new Date(0) })
      assert.strictEqual(open[0]?.status, "open")
      assert.deepStrictEqual(
        sent.at(-1)?.body,
        '{"status":"open","limit":1,"created_at_since":"1970-01-01T00:00:00.000Z"}'
      )
      const charge = await client.charges.get(open[0]?.id ?? "")
      assert.deepStrictEqual(charge, open[0])
    })
  )

  it.effect("sees its own organization only", () =>
    over(async ({ fetch }) => {
      const client = new PracticeData({ baseUrl, apiKey: other.key, fetch })
      const [charge] = await client.charges.search({ limit: 1 })
      assert.match(charge?.id ?? "", /harbor/)
      assert.instanceOf(await failureOf(client.charges.get("charge_oakridge_0001")), NotFoundError)
    })
  )
})

test("a resource that does not exist is refused by its name", () => {
  assert.throws(() => clientOf(undefined).resource("chargers"), 'There is no resource "chargers"')
})
