/** Invoices with their lines, and the benefits that the lines use. */
import * as Field from "./Field.ts"
import * as Filter from "./Filter.ts"
import * as Resource from "./Resource.ts"

export const Invoice = Field.record("Invoice", "An invoice of a clinic to a client.", {
  id: Field.id("invoice"),
  home_clinic: Field.ref("clinic", "The clinic that holds the plan."),
  servicing_clinic: Field.ref("clinic", "The clinic that gave the service."),
  client_id: Field.ref("client", "The client."),
  pet: Field.ref("pet", "The pet."),
  invoice_pims_id: Field.text("Identifier of the invoice in the practice software.", "100001"),
  invoice_date: Field.dateTime("Date of the invoice."),
  status: Field.text("State of the invoice.", "paid"),
  subtotal: Field.number("Sum of the lines.", 130),
  discount: Field.number("Discount.", 10),
  tax: Field.number("Tax.", 9.6),
  total: Field.number("Amount to pay.", 129.6),
  is_deleted: Field.boolean("True if the invoice was deleted."),
  deleted_at: Field.dateTime("Time of the deletion."),
  ...Field.times
})

export const invoices = Resource.make("invoices", Invoice, {
  hidden: {},
  filters: {
    id: Filter.equals("id"),
    clinic: Filter.equals("home_clinic", "servicing_clinic"),
    ...Filter.named("client_id", "pet", "invoice_pims_id", "status"),
    include_deleted: Filter.includeMarked("is_deleted", "Includes deleted invoices."),
    ...Filter.timesSince
  }
})

export const InvoiceLine = Field.record("InvoiceLine", "One line of an invoice.", {
  id: Field.id("line"),
  invoice: Field.ref("invoice", "The invoice."),
  clinic: Field.ref("clinic", "The clinic."),
  pet: Field.ref("pet", "The pet."),
  invoice_line_pims_id: Field.text("Identifier of the line in the practice software.", "100001-1"),
  product_code: Field.text("Code of the product.", "EXAM-01"),
  product_name: Field.text("Name of the product.", "Wellness exam"),
  quantity: Field.number("Quantity.", 1),
  unit_price: Field.number("Price of a unit.", 68),
  discount: Field.number("Discount.", 13),
  total: Field.number("Amount of the line.", 55),
  is_deleted: Field.boolean("True if the line was deleted."),
  deleted_at: Field.dateTime("Time of the deletion."),
  ...Field.times
})

export const invoiceLines = Resource.make("invoice-lines", InvoiceLine, {
  hidden: {},
  filters: {
    ...Filter.named("id", "invoice", "clinic", "pet", "product_code"),
    include_deleted: Filter.includeMarked("is_deleted", "Includes deleted lines."),
    ...Filter.timesSince
  }
})

export const ConsumptionLog = Field.record("ConsumptionLog", "The use of a benefit by one line of an invoice.", {
  id: Field.id("consumption"),
  home_clinic: Field.ref("clinic", "The clinic that holds the plan."),
  servicing_clinic: Field.ref("clinic", "The clinic that gave the service."),
  invoice_pims_id: Field.text("Identifier of the invoice in the practice software.", "100001"),
  invoice_date: Field.dateTime("Date of the invoice."),
  invoice_line: Field.ref("line", "The invoice line."),
  invoice_line_aje_delta_discounted: Field.number("Adjusting entry of the line, discounted.", -4.25),
  invoice_line_aje_delta_gross: Field.number("Adjusting entry of the line, gross.", -5),
  invoice_line_pims_id: Field.text("Identifier of the invoice line in the practice software.", "100001-1"),
  pet: Field.ref("pet", "The pet."),
  pet_benefit: Field.ref("benefit", "The benefit that was used."),
  product_code: Field.text("Code of the product.", "EXAM-01"),
  product_name: Field.text("Name of the product.", "Wellness exam"),
  qty_available_on_plan: Field.number("Quantity available on the plan before.", 2),
  qty_consumed: Field.number("Quantity used.", 1),
  qty_in_plan: Field.number("Quantity covered by the plan.", 1),
  qty_out_of_plan: Field.number("Quantity not covered by the plan.", 0),
  qty_remaining: Field.number("Quantity left on the plan.", 1),
  revenue_in_plan_total: Field.number("Revenue covered by the plan.", 55),
  revenue_out_of_plan_total: Field.number("Revenue not covered by the plan.", 0),
  revenue_to_recognize_total: Field.number("Revenue to recognize.", 55),
  revenue_to_recognize_per_unit: Field.number("Revenue to recognize for each unit.", 55),
  is_unlimited_benefit: Field.boolean("True if the benefit has no limit."),
  subscription: Field.ref("subscription", "The subscription."),
  ...Field.times,
  is_deleted: Field.boolean("True if the log was deleted.")
})

export const consumptionLogs = Resource.make("consumption-logs", ConsumptionLog, {
  hidden: {},
  contract: ["search"],
  filters: {
    ...Filter.named("id", "pet", "subscription", "home_clinic", "product_code", "invoice_line"),
    invoice_line_id: Filter.equals("invoice_line"),
    include_deleted: Filter.includeMarked("is_deleted", "Includes deleted logs."),
    modified_since: Filter.since("updated_at"),
    ...Filter.timesSince
  }
})
