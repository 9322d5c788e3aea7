/** The organization itself: a resource of which each organization has one record, its own. */
import { Schema } from "effect"
import { HttpApiEndpoint } from "effect/http-api"
import { OrgMismatch, RecordNotFound, responses } from "../Errors.ts"
import * as Field from "./Field.ts"
import { organization as organizationField } from "./Requests.ts"
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

const described = { name: "organization", record: Organization } as const

export const organization = {
  ...described,
  table: "organizations",
  orderedBy: "updated_at",
  hidden: {},
  filters: {},
  group: Resource.groupOf(described).add(
    HttpApiEndpoint.post("get", "/organization/get", {
      payload: Schema.Struct({ organization: organizationField }).annotate({ identifier: "OrganizationGetRequest" }),
      success: Organization,
      error: responses(OrgMismatch, RecordNotFound, ...Resource.down)
    }).annotateMerge(
      Resource.documented(described, "get", {
        summary: "Get the organization",
        description: "The organization that the API key resolves to.",
        request: {}
      })
    )
  )
} as const
