/** Fills an empty database with the demo data. */
import type { PgClient } from "@effect/sql-pg"
import { Effect, Redacted } from "effect"
import { hashOf } from "../keys/KeyLookup.ts"
import { CancellationPaymentIntents } from "../api/records/CancellationPaymentIntents.ts"
import { ChargeAdjustments } from "../api/records/ChargeAdjustments.ts"
import { ChargePayments } from "../api/records/ChargePayments.ts"
import { ChargeRefunds } from "../api/records/ChargeRefunds.ts"
import { Charges } from "../api/records/Charges.ts"
import { Clinics } from "../api/records/Clinics.ts"
import { ConsumptionLogs } from "../api/records/ConsumptionLogs.ts"
import { InvoiceLines } from "../api/records/InvoiceLines.ts"
import { Invoices } from "../api/records/Invoices.ts"
import { Organizations } from "../api/records/Organizations.ts"
import { PaymentIntents } from "../api/records/PaymentIntents.ts"
import { PaymentPlans } from "../api/records/PaymentPlans.ts"
import { PetBenefits } from "../api/records/PetBenefits.ts"
import { Pets } from "../api/records/Pets.ts"
import { Products } from "../api/records/Products.ts"
import { Subscriptions } from "../api/records/Subscriptions.ts"
import { load } from "../records/Loader.ts"
import { organizations, recordsOf } from "./DemoData.ts"

const loadOrganization = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  organization: (typeof organizations)[number]
) {
  const records = recordsOf(organization)
  yield* load(sql, Organizations.resource, records.organizations)
  yield* load(sql, Clinics.resource, records.clinics)
  yield* load(sql, Pets.resource, records.pets)
  yield* load(sql, Subscriptions.resource, records.subscriptions)
  yield* load(sql, PaymentPlans.resource, records.paymentPlans)
  yield* load(sql, PaymentIntents.resource, records.paymentIntents)
  yield* load(sql, CancellationPaymentIntents.resource, records.cancellationPaymentIntents)
  yield* load(sql, PetBenefits.resource, records.petBenefits)
  yield* load(sql, Products.resource, records.products)
  yield* load(sql, ConsumptionLogs.resource, records.consumptionLogs)
  yield* load(sql, Invoices.resource, records.invoices)
  yield* load(sql, InvoiceLines.resource, records.invoiceLines)
  yield* load(sql, Charges.resource, records.charges)
  yield* load(sql, ChargePayments.resource, records.chargePayments)
  yield* load(sql, ChargeAdjustments.resource, records.chargeAdjustments)
  yield* load(sql, ChargeRefunds.resource, records.chargeRefunds)
  const { slug, key } = organization
  yield* sql`insert into api_keys ${sql.insert({
    organization_id: `org_${slug}`,
    id: `key_${slug}_demo`,
    name: "Demo",
    prefix: "pda_demo_",
    key_hash: hashOf(Redacted.make(key))
  })}`
})

/** Loads the demo data, all of it or nothing. False when the database has an organization already: it is left as it is. */
export const loadDemoData = Effect.fn("Demo.load")(function* (sql: PgClient.PgClient) {
  const found = yield* sql`select 1 from organizations limit 1`
  if (found.length > 0) return false
  yield* sql.withTransaction(
    Effect.forEach(organizations, (organization) => loadOrganization(sql, organization), { discard: true })
  )
  // Without statistics, the first pages would be sorted instead of read in order.
  yield* sql`analyze`
  return true
})
