import { Schema } from "effect"
import * as Field from "./Field.ts"
import * as Filter from "./Filter.ts"
import * as Resource from "./Resource.ts"

export const Clinic = Field.record("Clinic", "A clinic of the organization.", {
  id: Field.id("clinic"),
  clinic_pims_id: Field.text("Identifier in the practice software.", "OAK-1"),
  name: Field.text("Name of the clinic.", "Oakridge Animal Hospital"),
  time_zone: Field.text("Time zone, as in the IANA database.", "America/Denver"),
  url: Field.text("Website of the clinic.", "https://oakridge.example"),
  organization: Field.ref("org", "The organization.")
})

export const clinics = Resource.make({
  name: "clinics",
  record: Clinic,
  hidden: {
    created_at: Schema.optionalKey(Field.createdAt),
    processor_account: Schema.optionalKey(Field.text("The connected payment processor account.", "acct_1Oak"))
  },
  orderedBy: "created_at",
  contract: ["search"],
  filters: Filter.named("id", "clinic_pims_id", "name")
})
