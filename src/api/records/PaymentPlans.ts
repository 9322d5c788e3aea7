import * as Field from "./Field.ts"
import * as Filter from "./Filter.ts"
import * as Resource from "./Resource.ts"

export const PaymentPlan = Field.record("PaymentPlan", "The schedule of payments of a subscription.", {
  id: Field.id("payment_plan"),
  subscription: Field.ref("subscription", "The subscription."),
  pet: Field.ref("pet", "The pet."),
  clinic: Field.ref("clinic", "The clinic."),
  status: Field.text("State of the plan.", "active"),
  payment_amount: Field.number("Amount of a payment.", 42.5),
  number_of_payments: Field.integer("Number of payments.", 12),
  payments_made: Field.integer("Number of payments made so far.", 3),
  frequency: Field.text("Frequency of the payments.", "monthly"),
  next_payment_date: Field.dateTime("Due date of the next payment."),
  ...Field.times
})

export const paymentPlans = Resource.make({
  name: "payment-plans",
  record: PaymentPlan,
  hidden: {},
  orderedBy: "updated_at",
  filters: {
    ...Filter.named("id", "subscription", "pet", "clinic", "status"),
    ...Filter.timesSince
  }
})
