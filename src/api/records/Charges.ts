/** The charges of invoices, and the payments, corrections and refunds of each. */
import { Schema } from "effect"
import * as Field from "./Field.ts"
import * as Filter from "./Filter.ts"
import * as Resource from "./Resource.ts"

export const Charge = Field.record("Charge", "The amount that a client owes for an invoice, and the payments.", {
  id: Field.id("charge"),
  home_clinic: Field.ref("clinic", "The clinic that holds the plan."),
  servicing_clinic: Field.ref("clinic", "The clinic that gave the service."),
  invoice: Field.ref("invoice", "The invoice."),
  invoice_pims_id: Field.number("Number of the invoice in the practice software.", 100001),
  payment_method_id: Field.text("The payment method.", "pm_1Oak0001"),
  status: Field.text("State of the charge.", "paid"),
  original_amount: Field.number("Amount at first.", 120),
  current_amount: Field.number("Amount after adjustments.", 110),
  net_paid: Field.number("Amount paid less refunds.", 110),
  paid_amount: Field.number("Amount paid.", 110),
  overpaid_amount: Field.number("Amount paid beyond what was owed.", 0),
  outstanding_balance: Field.number("Amount still owed.", 0),
  refunded_amount: Field.number("Amount refunded.", 0),
  ...Field.times
})

export const charges = Resource.make("charges", Charge, {
  hidden: { pet: Schema.optionalKey(Field.ref("pet", "The pet of the charge.")) },
  contract: ["search", "get"],
  filters: {
    id: Filter.equals("id"),
    clinic: Filter.equals("home_clinic", "servicing_clinic"),
    ...Filter.named("pet", "status"),
    invoice_id: Filter.equals("invoice"),
    invoice_pims_id: Filter.numberEquals("invoice_pims_id"),
    ...Filter.timesSince
  }
})

export const ChargePayment = Field.record("ChargePayment", "A payment towards a charge.", {
  id: Field.id("charge_payment"),
  currency: Field.text("Currency, as ISO 4217.", "usd"),
  status: Field.text("State of the payment.", "succeeded"),
  amount: Field.number("Amount of the payment.", 110),
  charge: Field.ref("charge", "The charge."),
  ...Field.times
})

export const chargePayments = Resource.make("charge-payments", ChargePayment, {
  hidden: {},
  contract: ["get"],
  filters: { ...Filter.named("id", "charge", "status"), ...Filter.timesSince }
})

export const ChargeAdjustment = Field.record("ChargeAdjustment", "A correction of a charge's amount.", {
  id: Field.id("charge_adjustment"),
  charge: Field.ref("charge", "The charge."),
  amount: Field.number("Amount of the correction.", -10),
  reason: Field.text("Reason of the correction.", "Courtesy"),
  ...Field.times
})

export const chargeAdjustments = Resource.make("charge-adjustments", ChargeAdjustment, {
  hidden: {},
  filters: { ...Filter.named("id", "charge"), ...Filter.timesSince }
})

export const ChargeRefund = Field.record("ChargeRefund", "Money returned on a charge.", {
  id: Field.id("charge_refund"),
  refund_date: Field.dateTime("Time of the refund."),
  amount: Field.number("Amount of the refund.", 20),
  charge: Field.ref("charge", "The charge."),
  ...Field.times
})

export const chargeRefunds = Resource.make("charge-refunds", ChargeRefund, {
  hidden: {},
  contract: ["search"],
  filters: { ...Filter.named("id", "charge"), ...Filter.timesSince }
})
