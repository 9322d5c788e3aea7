import * as Field from "./Field.ts"
import * as Filter from "./Filter.ts"
import * as Resource from "./Resource.ts"

export const ChargePayment = Field.record("ChargePayment", "A payment towards a charge.", {
  id: Field.id("charge_payment"),
  currency: Field.text("Currency, as ISO 4217.", "usd"),
  status: Field.text("State of the payment.", "succeeded"),
  amount: Field.number("Amount of the payment.", 110),
  charge: Field.ref("charge", "The charge."),
  ...Field.times
})

export const chargePayments = Resource.make({
  name: "charge-payments",
  record: ChargePayment,
  hidden: {},
  orderedBy: "updated_at",
  contract: ["get"],
  filters: {
    ...Filter.named("id", "charge", "status"),
    ...Filter.timesSince
  }
})
