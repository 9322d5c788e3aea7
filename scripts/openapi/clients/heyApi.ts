/** A sync of two resources, a processor read, a delivery and errors, with the client that `@hey-api/openapi-ts` generates. */
import { createClient } from "../generated/hey-api/v3/client/index.js"
import * as api from "../generated/hey-api/v3/index.js"
import { client as intakeClient } from "../generated/hey-api/v1/client.gen.js"
import * as intake from "../generated/hey-api/v1/index.js"
import { address, type Changes, expectData, expectEqual, key, patientFetch, report, sync } from "./sync.js"

const client = createClient({ baseUrl: `${address}/api/v3`, auth: key, fetch: patientFetch })
intakeClient.setConfig({ baseUrl: `${address}/api/v1`, fetch: patientFetch })

const changes: Changes = (body) => api.changesRead({ client, body })

await sync("invoices", changes, {
  search: (body) => api.invoicesSearch({ client, body: { ...body, include_deleted: true } }),
  get: (id) => api.invoicesGet({ client, body: { id } })
})
await sync("charges", changes, {
  search: (body) => api.chargesSearch({ client, body }),
  get: (id) => api.chargesGet({ client, body: { id } })
})

const charge: api.Charge = expectData(await api.chargesGet({ client, body: { id: "charge_oakridge_0001" } }))
const paid: number | null = charge.paid_amount
expectEqual(typeof paid, "number")

const processor = expectData(await api.pspChargesSearch({ client, body: { clinic: "clinic_oakridge_01", limit: 2 } }))
const last: api.PspObject | undefined = processor.data.at(-1)
expectEqual(typeof last?.created, "number")
expectEqual(processor.has_more, true)

const missing = await api.chargesGet({ client, body: { id: "none" } })
expectEqual([missing.response?.status, missing.error?.detail], [404, "No such record"])

const faulty = await api.chargesSearch({ client, body: { updated_at_since: "yesterday" } })
const detail = faulty.error?.detail
const faults: Array<api.ValidationError> = Array.isArray(detail) ? detail : []
expectEqual([faulty.response?.status, faults[0]?.loc], [422, ["body", "updated_at_since"]])

const delivery = await intake.invoiceDeletionsSchedule({
  headers: { "idempotency-key": "hey-api", "x-organization-id": "org_oakridge" },
  body: { invoices: [{ invoice_id: "invoice_oakridge_0001" }] }
})
expectEqual(expectData(delivery).status, "scheduled")
const task = expectData(await api.invoiceDeletionsGet({ client, body: { idempotency_key: "hey-api" } }))
expectEqual([task.task_id, task.invoices_count], [expectData(delivery).task_id, 1])

report()
