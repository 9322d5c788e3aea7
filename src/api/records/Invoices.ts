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

export const invoices = Resource.make({
  name: "invoices",
  record: Invoice,
  hidden: {},
  orderedBy: "updated_at",
  filters: {
    id: Filter.equals("id"),
    clinic: Filter.equals("home_clinic", "servicing_clinic"),
    ...Filter.named("client_id", "pet", "invoice_pims_id", "status"),
    include_deleted: Filter.includeMarked("is_deleted", "Includes deleted invoices."),
    ...Filter.timesSince
  }
})
