/** A sync of two resources, a processor read, a delivery and errors, with `openapi-fetch` and the types of `openapi-typescript`. */
import createClient from "openapi-fetch"
import type { paths as V1 } from "../generated/openapi-typescript/v1.js"
import type { components, paths as V3 } from "../generated/openapi-typescript/v3.js"
import { address, type Changes, expectData, expectEqual, key, patientFetch, report, sync } from "./sync.js"

const headers = { authorization: `Bearer ${key}` }
const { POST } = createClient<V3>({ baseUrl: `${address}/api/v3`, headers, fetch: patientFetch })

const changes: Changes = (body) => POST("/changes", { body })

await sync("invoices", changes, {
  search: (body) => POST("/invoices/search", { body: { ...body, include_deleted: true } }),
  get: (id) => POST("/invoices/get", { body: { id } })
})
await sync("charges", changes, {
  search: (body) => POST("/charges/search", { body }),
  get: (id) => POST("/charges/get", { body: { id } })
})

const charge: components["schemas"]["Charge"] = expectData(
  await POST("/charges/get", { body: { id: "charge_oakridge_0001" } })
)
const paid: number | null = charge.paid_amount
expectEqual(typeof paid, "number")

const processor = expectData(await POST("/psp-charges/search", { body: { clinic: "clinic_oakridge_01", limit: 2 } }))
const last = processor.data.at(-1)
const created: number | undefined = last?.created
expectEqual(typeof created, "number")
expectEqual(processor.has_more, true)

const missing = await POST("/charges/get", { body: { id: "none" } })
expectEqual([missing.response.status, missing.error?.detail], [404, "No such record"])

const faulty = await POST("/charges/search", { body: { updated_at_since: "yesterday" } })
const detail = faulty.error?.detail
const faults: Array<components["schemas"]["ValidationError"]> = Array.isArray(detail) ? detail : []
expectEqual([faulty.response.status, faults[0]?.loc], [422, ["body", "updated_at_since"]])

const intake = createClient<V1>({ baseUrl: `${address}/api/v1`, fetch: patientFetch })
const delivery = await intake.POST("/invoice-deletions", {
  params: { header: { "idempotency-key": "openapi-fetch", "x-organization-id": "org_oakridge" } },
  body: { invoices: [{ invoice_id: "invoice_oakridge_0001" }] }
})
expectEqual(expectData(delivery).status, "scheduled")
const task = expectData(await POST("/invoice-deletions/get", { body: { idempotency_key: "openapi-fetch" } }))
expectEqual([task.task_id, task.invoices_count], [expectData(delivery).task_id, 1])

report()
