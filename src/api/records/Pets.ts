/** Pets, their subscriptions to wellness plans, and the benefits that these grant. */
import { Schema } from "effect"
import * as Field from "./Field.ts"
import * as Filter from "./Filter.ts"
import * as Resource from "./Resource.ts"

export const Pet = Field.record("Pet", "A pet of a client.", {
  id: Field.id("pet"),
  name: Field.text("Name of the pet.", "Biscuit"),
  species: Field.text("Species.", "Canine"),
  breed: Field.text("Breed.", "Beagle"),
  sex: Field.text("Sex.", "female"),
  date_of_birth: Field.date("Date of birth."),
  clinic: Field.ref("clinic", "The clinic."),
  client_id: Field.ref("client", "The client."),
  ...Field.times
})

export const pets = Resource.make("pets", Pet, {
  hidden: {},
  filters: { ...Filter.named("id", "clinic", "client_id", "species"), ...Filter.timesSince }
})

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

export const subscriptions = Resource.make("subscriptions", Subscription, {
  hidden: {},
  filters: { ...Filter.named("id", "pet", "clinic", "status"), ...Filter.timesSince }
})

export const PetBenefit = Field.record("PetBenefit", "A benefit that a plan grants a pet.", {
  id: Field.id("benefit"),
  pet: Field.ref("pet", "The pet."),
  subscription: Field.ref("subscription", "The subscription that grants it."),
  benefit_name: Field.text("Name of the benefit.", "Wellness exam"),
  benefit_description: Field.text("The services that the benefit covers.", "Two wellness exams a year"),
  wellness_plan_name: Field.text("Name of the plan.", "Gold Canine Wellness"),
  is_addon: Field.boolean("True if it was added to the plan."),
  revenue_to_recognize_per_unit: Field.number("Revenue to recognize for each unit.", 55),
  retail_value: Field.number("Retail value of a unit.", 68),
  provided: Field.number("Quantity granted.", 2),
  remaining: Field.number("Quantity left.", 1),
  is_unlimited: Field.boolean("True if it has no limit."),
  rounding_addition: Field.number("Addition that evens out rounding.", 0.01),
  is_perk: Field.boolean("True if it is a perk."),
  in_kind_discount: Field.number("Discount in kind.", 0),
  parent_petbenefit: Field.ref("benefit", "The benefit that it is part of."),
  ...Field.times,
  inactivation_date: Field.dateTime("Time of the deactivation."),
  activation_date: Field.dateTime("Time of the activation."),
  product_ids: Field.texts("The products that it covers.", ["product_oakridge_0001"])
})

export const petBenefits = Resource.make("pet-benefits", PetBenefit, {
  hidden: { removed: Schema.optionalKey(Field.boolean("True if the benefit was removed from its plan.")) },
  contract: ["search", "get"],
  filters: {
    id: Filter.equals("id"),
    pet_id: Filter.equals("pet"),
    subscription_id: Filter.equals("subscription"),
    include_deleted: Filter.includeMarked("removed", "Includes benefits that were removed from their plan."),
    ...Filter.timesSince,
    created_before: Filter.before("created_at"),
    updated_before: Filter.before("updated_at")
  }
})
