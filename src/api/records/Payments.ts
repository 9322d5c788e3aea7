/** The scheduled payments of subscriptions, and the settlement of cancelled ones. */
import { Schema } from "effect"
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

export const paymentPlans = Resource.make("payment-plans", PaymentPlan, {
  hidden: {},
  filters: { ...Filter.named("id", "subscription", "pet", "clinic", "status"), ...Filter.timesSince }
})

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

export const paymentIntents = Resource.make("payment-intents", PaymentIntent, {
  hidden: Field.planNameParts,
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

export const CancellationPaymentIntent = Field.record(
  "CancellationPaymentIntent",
  "The settlement of a cancelled plan.",
  {
    id: Field.id("cancellation"),
    clinic_name: Field.text("Name of the clinic.", "Oakridge Animal Hospital"),
    clinic_id: Field.ref("clinic", "The clinic."),
    date: Field.dateTime("Date of the cancellation."),
    discounted: Field.boolean("True if the settlement was discounted."),
    discounted_amount: Field.number("Amount of the discount.", 10),
    new_price: Field.number("Price after the discount.", 90),
    percent_discount: Field.number("Discount in percent.", 10),
    pet: Field.ref("pet", "The pet on the plan."),
    subscription: Field.ref("subscription", "The subscription that was cancelled."),
    wellnes_plan_name: Field.planName,
    payments: Field.number("Sum of the payments made.", 127.5),
    payment_amount: Field.number("Amount to pay or to refund.", 90),
    payment_or_refund: Field.text("`payment` or `refund`: the direction of the amount.", "payment"),
    paymentIntent_or_refund_id: Field.text("Identifier of the payment or refund.", "pi_3Oak0001"),
    total_benefits_consumed_at_retail_price: Field.number("Benefits used, at retail price.", 230),
    total_benefits_consumed_at_discounted_price: Field.number("Benefits used, at the discounted price.", 207),
    reason: Field.text("Reason of the cancellation.", "Moved away"),
    early_cancellation_fee: Field.number("Fee for cancelling early.", 25),
    refund_ids: Field.texts("The refunds made.", ["re_3Oak0001"]),
    isSucceeded: Field.boolean("True if the settlement succeeded."),
    IsTest: Field.boolean("True for a test."),
    ...Field.times
  }
)

export const cancellationPaymentIntents = Resource.make("cancellation-payment-intents", CancellationPaymentIntent, {
  hidden: Field.planNameParts,
  contract: ["search"],
  filters: { ...Filter.named("id", "pet", "subscription"), clinic: Filter.equals("clinic_id"), ...Filter.timesSince }
})
