import * as Field from "./Field.ts"
import * as Filter from "./Filter.ts"
import * as Resource from "./Resource.ts"

export const ChargeAdjustment = Field.record("ChargeAdjustment", "A correction of a charge's amount.", {
  id: Field.id("charge_adjustment"),
  charge: Field.ref("charge", "The charge."),
  amount: Field.number("Amount of the correction.", -10),
  reason: Field.text("Reason of the correction.", "Courtesy"),
  ...Field.times
})

export const chargeAdjustments = Resource.make({
  name: "charge-adjustments",
  record: ChargeAdjustment,
  hidden: {},
  orderedBy: "updated_at",
  filters: {
    ...Filter.named("id", "charge"),
    ...Filter.timesSince
  }
})
