/**
 * The contract: the APIs, the records with their schemas, the errors, and what the typed client needs. Imports nothing
 * that serves it, and runs wherever `effect` does.
 */
import { layerKey } from "../../api/Authorization.ts"

export { Authorization, CurrentOrganization, JsonBody } from "../../api/Authorization.ts"

export const Client = { layerKey }
export { DataApi } from "../../api/DataApi.ts"
export { DeletionTask } from "../../api/DeletionTasks.ts"
export * as Errors from "../../api/Errors.ts"
export { Health, OperationsApi, Readiness } from "../../api/HealthApi.ts"
export {
  DeletedInvoice,
  DeletedInvoiceLine,
  DeliveryHeaders,
  DeliveryReceipt,
  IntakeApi,
  IntakeUnavailable,
  InvoiceDeletions,
  VersionOneApi
} from "../../api/IntakeApi.ts"
export type { PspObject } from "../../api/Psp.ts"
export * from "../../api/records/Charges.ts"
export * from "../../api/records/Invoices.ts"
export * from "../../api/records/Organizations.ts"
export * from "../../api/records/Payments.ts"
export * from "../../api/records/Pets.ts"
export { type Records, resources } from "../../api/records/index.ts"
export type { Filter } from "../../api/records/Filter.ts"
export type { Resource, Stored } from "../../api/records/Resource.ts"
