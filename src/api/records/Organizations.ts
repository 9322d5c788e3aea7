/** The organization itself. */
import { Schema } from "effect"
import { HttpApiGroup } from "effect/http-api"
import * as Field from "./Field.ts"
import { Service } from "../../records/Repository.ts"
import * as Resource from "./Resource.ts"

export const Organization = Schema.Struct({
  id: Field.id("org"),
  name: Field.text("Name of the organization.", "Oakridge Veterinary Group"),
  created_at: Field.createdAt,
  updated_at: Field.updatedAt
}).annotate({
  identifier: "Organization",
  description: "An organization: the owner of clinics and of all their records."
})

const resource = Resource.make({
  name: "organization",
  table: "organizations",
  record: Organization,
  hidden: {},
  orderedBy: "updated_at",
  filters: {}
})

export class OrganizationsApi extends HttpApiGroup.make("organization").add(Resource.getOwn("provisional", resource)) {}

/** Reads organizations: each has one record, its own. */
export class Organizations extends Service<Organizations>()("practice-data/api/records/Organizations", resource) {}
