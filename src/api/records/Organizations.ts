/** The organization itself. */
import { Schema } from "effect"
import * as Field from "./Field.ts"
import * as Resource from "./Resource.ts"

export const Organization = Schema.Struct({
  id: Field.id("org"),
  name: Field.text("Name of the organization.", "Oakridge Veterinary Group"),
  ...Field.times
}).annotate({
  identifier: "Organization",
  description: "An organization: the owner of clinics and of all their records."
})

export const organization = Resource.own({
  name: "organization",
  table: "organizations",
  record: Organization,
  orderedBy: "updated_at"
})
