import * as Field from "./Field.ts"
import * as Filter from "./Filter.ts"
import * as Resource from "./Resource.ts"

export const ChargeRefund = Field.record("ChargeRefund", "Money returned on a charge.", {
  id: Field.id("charge_refund"),
  refund_date: Field.dateTime("Time of the refund."),
  amount: Field.number("Amount of the refund.", 20),
  charge: Field.ref("charge", "The charge."),
  ...Field.times
})

export const chargeRefunds = Resource.make({
  name: "charge-refunds",
  record: ChargeRefund,
  hidden: {},
  orderedBy: "updated_at",
  contract: ["search"],
  filters: {
    ...Filter.named("id", "charge"),
    ...Filter.timesSince
  }
})
