/** The organization itself. */
import * as Field from "./Field.ts"
import * as Resource from "./Resource.ts"

export const Organization = Field.record(
  "Organization",
  "An organization: the owner of clinics and of all their records.",
  {
    id: Field.id("org"),
    name: Field.text("Name of the organization.", "Oakridge Veterinary Group"),
    ...Field.times
  }
)

export const organization = Resource.own({
  name: "organization",
  table: "organizations",
  record: Organization,
  orderedBy: "updated_at"
})
