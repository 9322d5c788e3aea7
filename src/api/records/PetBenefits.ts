import { Schema } from "effect"
import * as Field from "./Field.ts"
import * as Filter from "./Filter.ts"
import * as Resource from "./Resource.ts"

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

export const petBenefits = Resource.make({
  name: "pet-benefits",
  record: PetBenefit,
  hidden: { removed: Schema.optionalKey(Field.boolean("True if the benefit was removed from its plan.")) },
  orderedBy: "updated_at",
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
