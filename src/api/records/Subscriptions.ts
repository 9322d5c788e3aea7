import * as Field from "./Field.ts"
import * as Filter from "./Filter.ts"
import * as Resource from "./Resource.ts"

export const Subscription = Field.record("Subscription", "A pet on a wellness plan.", {
  id: Field.id("subscription"),
  pet: Field.ref("pet", "The pet."),
  clinic: Field.ref("clinic", "The clinic."),
  plan_name: Field.text("Name of the plan.", "Gold"),
  status: Field.text("State of the subscription.", "active"),
  start_date: Field.dateTime("Start of the subscription."),
  end_date: Field.dateTime("End of the subscription."),
  cancelled_at: Field.dateTime("Time of the cancellation."),
  price: Field.number("Price of a billing period.", 42.5),
  billing_frequency: Field.text("Frequency of billing.", "monthly"),
  auto_renew: Field.boolean("True if it renews automatically."),
  ...Field.times
})

export const subscriptions = Resource.make({
  name: "subscriptions",
  record: Subscription,
  hidden: {},
  orderedBy: "updated_at",
  filters: {
    ...Filter.named("id", "pet", "clinic", "status"),
    ...Filter.timesSince
  }
})
