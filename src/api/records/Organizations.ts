/** The organization, its clinics and their products. */
import { Schema } from "effect"
import { HttpApiEndpoint } from "effect/http-api"
import { OrgMismatch, RecordNotFound, RecordStoreDown, responses } from "../Errors.ts"
import { annotations } from "../openapi/Document.ts"
import * as Field from "./Field.ts"
import * as Filter from "./Filter.ts"
import { organization as organizationField } from "./Requests.ts"
import * as Resource from "./Resource.ts"

export const Organization = Field.record(
  "Organization",
  "An organization: the owner of clinics and of all their records.",
  { id: Field.id("org"), name: Field.text("Name of the organization.", "Oakridge Veterinary Group"), ...Field.times }
)

const described = { name: "organization", record: Organization } as const

export const organization = {
  ...described,
  table: "organizations",
  orderedBy: "updated_at",
  hidden: {},
  filters: {},
  group: Resource.makeGroup(described).add(
    HttpApiEndpoint.post("get", "/organization/get", {
      payload: Schema.Struct({ organization: organizationField }).annotate({ identifier: "OrganizationGetRequest" }),
      success: Organization,
      error: responses(OrgMismatch, RecordNotFound, RecordStoreDown)
    }).annotateMerge(
      annotations({
        operation: ["organization", "get"],
        summary: "Get the organization",
        description: "The organization that the API key resolves to.",
        request: {}
      })
    )
  )
} as const

export const Clinic = Field.record("Clinic", "A clinic of the organization.", {
  id: Field.id("clinic"),
  clinic_pims_id: Field.text("Identifier in the practice software.", "OAK-1"),
  name: Field.text("Name of the clinic.", "Oakridge Animal Hospital"),
  time_zone: Field.text("Time zone, as in the IANA database.", "America/Denver"),
  url: Field.text("Website of the clinic.", "https://oakridge.example"),
  organization: Field.ref("org", "The organization.")
})

export const clinics = Resource.make("clinics", Clinic, {
  hidden: {
    created_at: Schema.optionalKey(Field.createdAt),
    processor_account: Schema.optionalKey(Field.text("The connected payment processor account.", "acct_1Oak"))
  },
  contract: ["search"],
  filters: Filter.named("id", "clinic_pims_id", "name")
})

export const Product = Field.record("Product", "A product of a clinic.", {
  id: Field.id("product"),
  clinic: Field.ref("clinic", "The clinic."),
  product_code: Field.text("Code of the product.", "EXAM-01"),
  pims_id: Field.text("Identifier in the practice software.", "P-1001"),
  product_name: Field.text("Name of the product.", "Wellness exam"),
  retail_price: Field.number("Price for clients without a plan.", 68),
  member_price: Field.number("Price for members of a plan.", 55),
  member_cancellation_price: Field.number("Price that a cancellation settles at.", 61.2),
  created_at: Field.createdAt,
  modified_at: Field.timestamp("Time of the last change. Results are ordered by it.")
})

export const products = Resource.make("products", Product, {
  hidden: {},
  contract: ["search"],
  filters: {
    ...Filter.named("id", "clinic", "product_code", "pims_id", "product_name"),
    modified_since: Filter.since("modified_at")
  }
})
