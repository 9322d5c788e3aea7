import * as Field from "./Field.ts"
import * as Filter from "./Filter.ts"
import * as Resource from "./Resource.ts"

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

export const cancellationPaymentIntents = Resource.make({
  name: "cancellation-payment-intents",
  record: CancellationPaymentIntent,
  hidden: Field.planNameParts,
  orderedBy: "updated_at",
  contract: ["search"],
  filters: {
    ...Filter.named("id", "pet", "subscription"),
    clinic: Filter.equals("clinic_id"),
    ...Filter.timesSince
  }
})
