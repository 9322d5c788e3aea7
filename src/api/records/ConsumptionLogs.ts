import * as Field from "./Field.ts"
import * as Filter from "./Filter.ts"
import * as Resource from "./Resource.ts"

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

export const consumptionLogs = Resource.make({
  name: "consumption-logs",
  record: ConsumptionLog,
  hidden: {},
  orderedBy: "updated_at",
  contract: ["search"],
  filters: {
    ...Filter.named("id", "pet", "subscription", "home_clinic", "product_code", "invoice_line"),
    invoice_line_id: Filter.equals("invoice_line"),
    include_deleted: Filter.includeMarked("is_deleted", "Includes deleted logs."),
    modified_since: Filter.since("updated_at"),
    ...Filter.timesSince
  }
})
