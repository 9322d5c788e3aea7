/**
 * The resources of the API, in the contract's order. The endpoints, the repositories, the handlers, the demo data and
 * the tests of a resource follow from its line here.
 */
import { Array } from "effect"
import { cancellationPaymentIntents } from "./CancellationPaymentIntents.ts"
import { chargeAdjustments } from "./ChargeAdjustments.ts"
import { chargePayments } from "./ChargePayments.ts"
import { chargeRefunds } from "./ChargeRefunds.ts"
import { charges } from "./Charges.ts"
import { clinics } from "./Clinics.ts"
import { consumptionLogs } from "./ConsumptionLogs.ts"
import { invoiceLines } from "./InvoiceLines.ts"
import { invoices } from "./Invoices.ts"
import { organization } from "./Organizations.ts"
import { paymentIntents } from "./PaymentIntents.ts"
import { paymentPlans } from "./PaymentPlans.ts"
import { petBenefits } from "./PetBenefits.ts"
import { pets } from "./Pets.ts"
import { products } from "./Products.ts"
import { subscriptions } from "./Subscriptions.ts"
import type { Stored } from "./Resource.ts"

/** The resources that can be searched. */
export const searchable = Array.make(
  clinics,
  products,
  invoices,
  invoiceLines,
  consumptionLogs,
  petBenefits,
  charges,
  chargePayments,
  chargeAdjustments,
  chargeRefunds,
  paymentPlans,
  paymentIntents,
  cancellationPaymentIntents,
  pets,
  subscriptions
)

/** All resources. */
export const resources = Array.prepend(searchable, organization)

/** Stored records, by the name of their resource. */
export type Records = { readonly [R in (typeof resources)[number] as R["name"]]: ReadonlyArray<Stored<R>> }
