/** Subscriptions: pets on wellness plans. */
import { Schema } from "effect"
import { HttpApiGroup } from "effect/http-api"
import * as Field from "./Field.ts"
import * as Filter from "./Filter.ts"
import { Service } from "../../records/Repository.ts"
import * as Resource from "./Resource.ts"

export const Subscription = Schema.Struct({
  id: Field.id("subscription"),
  pet: Field.ref("pet", "The pet."),
  clinic: Field.ref("clinic", "The clinic."),
  plan_name: Field.text("Name of the plan.", "Gold"),
  status: Field.text("State of the subscription.", "active"),
  start_date: Field.dateTime("When it begins."),
  end_date: Field.dateTime("When it ends."),
  cancelled_at: Field.dateTime("When it was cancelled."),
  price: Field.number("Price of a billing period.", 42.5),
  billing_frequency: Field.text("How often it is billed.", "monthly"),
  auto_renew: Field.boolean("Whether it renews by itself."),
  created_at: Field.createdAt,
  updated_at: Field.updatedAt
}).annotate({ identifier: "Subscription", description: "A pet on a wellness plan." })

const resource = Resource.make({
  name: "subscriptions",
  table: "subscriptions",
  record: Subscription,
  hidden: {},
  orderedBy: "updated_at",
  filters: {
    id: Filter.equals("id"),
    pet: Filter.equals("pet"),
    clinic: Filter.equals("clinic"),
    status: Filter.equals("status"),
    created_at_since: Filter.since("created_at"),
    updated_at_since: Filter.since("updated_at")
  }
})

export class SubscriptionsApi extends HttpApiGroup.make("subscriptions").add(
  Resource.search("provisional", resource),
  Resource.get("provisional", resource)
) {}

/** Reads subscriptions. */
export class Subscriptions extends Service<Subscriptions>()("practice-data/api/records/Subscriptions", resource) {}
