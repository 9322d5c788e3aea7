/** A sync of two resources, a processor read, a delivery and errors, with the client that `swagger-typescript-api` generates. */
import { Api as IntakeApi } from "../generated/swagger-typescript-api/v1.js"
import { Api, type Charge, type HttpResponse } from "../generated/swagger-typescript-api/v3.js"
import { address, expectData, expectEqual, key, report, sync } from "./sync.js"

const apiOf = (token: string) =>
  new Api({
    baseUrl: `${address}/api/v3`,
    securityWorker: () => ({ headers: { authorization: `Bearer ${token}` } })
  })
const api = apiOf(key)
const intake = new IntakeApi({ baseUrl: `${address}/api/v1` })

/** A response whose data and error may be null. */
const answerOf = async <Data, Failure>(called: Promise<HttpResponse<Data, Failure>>) => {
  const response = await called
  return { data: response.ok ? response.data : undefined, error: response.error, response }
}

await sync("invoices", {
  changes: (body) => answerOf(api.invoices.invoicesChanges(body)),
  search: (body) => answerOf(api.invoices.invoicesSearch({ ...body, include_deleted: true })),
  get: (id) => answerOf(api.invoices.invoicesGet({ id }))
})
await sync("charges", {
  changes: (body) => answerOf(api.charges.chargesChanges(body)),
  search: (body) => answerOf(api.charges.chargesSearch(body)),
  get: (id) => answerOf(api.charges.chargesGet({ id }))
})

const charge: Charge = expectData(await answerOf(api.charges.chargesGet({ id: "charge_oakridge_0001" })))
const paid: number | null = charge.paid_amount
expectEqual(typeof paid, "number")

const page = { clinic: "clinic_oakridge_01", limit: 2 }
const processor = expectData(await answerOf(api.pspCharges.pspChargesSearch(page)))
const created: number | undefined = processor.data.at(-1)?.created
expectEqual([typeof created, processor.has_more], ["number", true])

const missing = await answerOf(api.charges.chargesGet({ id: "none" }))
expectEqual([missing.response.status, missing.error.detail], [404, "No such record"])

const refused = await answerOf(apiOf("none").charges.chargesSearch({}))
expectEqual([refused.response.status, refused.response.headers.get("x-error")], [401, "unauthorized"])

const sent = { headers: { "idempotency-key": "swagger-typescript-api", "x-organization-id": "org_oakridge" } }
const named = { invoices: [{ invoice_id: "invoice_oakridge_0001" }] }
const delivery = expectData(await answerOf(intake.invoiceDeletions.invoiceDeletionsSchedule(named, sent)))
expectEqual(delivery.status, "scheduled")

report()
