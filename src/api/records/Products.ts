import * as Field from "./Field.ts"
import * as Filter from "./Filter.ts"
import * as Resource from "./Resource.ts"

export const Product = Field.record("Product", "A product of a clinic.", {
  id: Field.id("product"),
  clinic: Field.ref("clinic", "The clinic."),
  product_code: Field.text("Code of the product.", "EXAM-01"),
  pims_id: Field.text("Identifier in the practice software.", "P-1001"),
  product_name: Field.text("Name of the product.", "Wellness exam"),
  retail_price: Field.number("Price for anyone.", 68),
  member_price: Field.number("Price for members of a plan.", 55),
  member_cancellation_price: Field.number("Price that a cancellation settles at.", 61.2),
  created_at: Field.createdAt,
  modified_at: Field.timestamp("Time of the last change. Results are ordered by it.")
})

export const products = Resource.make({
  name: "products",
  record: Product,
  hidden: {},
  orderedBy: "modified_at",
  contract: ["search"],
  filters: {
    ...Filter.named("id", "clinic", "product_code", "pims_id", "product_name"),
    modified_since: Filter.since("modified_at")
  }
})
