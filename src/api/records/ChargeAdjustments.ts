/** Charge adjustments: corrections of a charge's amount. */
import { Schema } from "effect"
import { HttpApiGroup } from "effect/http-api"
import * as Field from "./Field.ts"
import * as Filter from "./Filter.ts"
import { Service } from "../../records/Repository.ts"
import * as Resource from "./Resource.ts"

export const ChargeAdjustment = Schema.Struct({
  id: Field.id("charge_adjustment"),
  charge: Field.ref("charge", "The charge."),
  amount: Field.number("Amount of the correction.", -10),
  reason: Field.text("Why it was corrected.", "Courtesy"),
  created_at: Field.createdAt,
  updated_at: Field.updatedAt
}).annotate({ identifier: "ChargeAdjustment", description: "A correction of a charge's amount." })

const resource = Resource.make({
  name: "charge-adjustments",
  table: "charge_adjustments",
  record: ChargeAdjustment,
  hidden: {},
  orderedBy: "updated_at",
  filters: {
    id: Filter.equals("id"),
    charge: Filter.equals("charge"),
    created_at_since: Filter.since("created_at"),
    updated_at_since: Filter.since("updated_at")
  }
})

export class ChargeAdjustmentsApi extends HttpApiGroup.make("charge-adjustments").add(
  Resource.search("provisional", resource),
  Resource.get("provisional", resource)
) {}

/** Reads charge adjustments. */
export class ChargeAdjustments extends Service<ChargeAdjustments>()(
  "practice-data/api/records/ChargeAdjustments",
  resource
) {}
