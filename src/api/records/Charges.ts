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

export const charges = Resource.make({
  name: "charges",
  record: Charge,
  hidden: { pet: Schema.optionalKey(Field.ref("pet", "The pet of the charge.")) },
  orderedBy: "updated_at",
  contract: ["search", "get"],
  filters: {
    id: Filter.equals("id"),
    clinic: Filter.equals("home_clinic", "servicing_clinic"),
    pet: Filter.equals("pet"),
    status: Filter.equals("status"),
    invoice_id: Filter.equals("invoice"),
    invoice_pims_id: Filter.numberEquals("invoice_pims_id"),
    ...Filter.timesSince
  }
})
