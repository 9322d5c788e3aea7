/**
 * The resources of the API, in the contract's order. The endpoints, the repositories, the handlers, the demo data and
 * the tests of a resource follow from its line here.
 */
import { Array } from "effect"
import { chargeAdjustments, chargePayments, chargeRefunds, charges } from "./Charges.ts"
import { consumptionLogs, invoiceLines, invoices } from "./Invoices.ts"
import { clinics, organization, products } from "./Organizations.ts"
import { cancellationPaymentIntents, paymentIntents, paymentPlans } from "./Payments.ts"
import { petBenefits, pets, subscriptions } from "./Pets.ts"
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
