import * as Field from "./Field.ts"
import * as Filter from "./Filter.ts"
import * as Resource from "./Resource.ts"

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

export const invoiceLines = Resource.make({
  name: "invoice-lines",
  record: InvoiceLine,
  hidden: {},
  orderedBy: "updated_at",
  filters: {
    ...Filter.named("id", "invoice", "clinic", "pet", "product_code"),
    include_deleted: Filter.includeMarked("is_deleted", "Includes deleted lines."),
    ...Filter.timesSince
  }
})
