import { Schema } from "effect"
import * as Field from "./Field.ts"
import * as Filter from "./Filter.ts"
import * as Resource from "./Resource.ts"

export const PaymentIntent = Field.record("PaymentIntent", "A payment that a plan schedules, and its outcome.", {
  id: Field.id("payment_intent"),
  clinic_name: Field.text("Name of the clinic.", "Oakridge Animal Hospital"),
  clinic_id: Field.ref("clinic", "The clinic."),
  pet: Field.ref("pet", "The pet on the plan."),
  subscription: Field.ref("subscription", "The subscription that is paid for."),
  wellnes_plan_name: Field.planName,
  payment_amount: Field.number("Amount of the payment.", 42.5),
  payment_split: Schema.Struct({
    to_Platform: Field.number("Portion that settles with the platform.", 2.5),
    to_Processor: Field.number("Portion that settles with the payment processor.", 1.25),
    to_Clinic: Field.number("Portion that settles with the clinic.", 38.75)
  }).annotate({ description: "The amount by where each portion settles." }),
  scheduled_date: Field.dateTime("Due date."),
  captured_date: Field.dateTime("Time of the capture."),
  paid: Field.boolean("True if it was paid."),
  isRefunded: Field.boolean("True if it was refunded."),
  IsTest: Field.boolean("True for a test payment."),
  ...Field.times,
  isModifyCatchupPayment: Field.boolean("True if it catches up on a modified plan."),
  payment_modifications: Schema.NullOr(Schema.NonEmptyArray(Schema.String)).annotate({
    examples: [null],
    description: "The modifications of the payment. Null, never an empty list, if there are none."
  }),
  processor_payment_intent_id: Field.text("Identifier at the payment processor.", "pi_3Oak0001"),
  attempt_number: Field.integer("Number of attempts to collect the payment.", 1),
  original_amount_received: Field.number("Amount received at first.", 42.5),
  refunded_amount: Field.number("Amount refunded since.", 0)
})

export const paymentIntents = Resource.make({
  name: "payment-intents",
  record: PaymentIntent,
  hidden: Field.planNameParts,
  orderedBy: "updated_at",
  contract: ["search"],
  filters: {
    id: Filter.equals("id"),
    subscription_id: Filter.equals("subscription"),
    pet_id: Filter.equals("pet"),
    clinic: Filter.equals("clinic_id"),
    updated_at_since: Filter.since("updated_at"),
    created_at_since: Filter.since("created_at")
  }
})
