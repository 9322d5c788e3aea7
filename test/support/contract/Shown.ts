/** The records that the contract shows: section 2, fields and filters in its order. */
import {
  before,
  changed,
  changedSince,
  equals,
  fields,
  includes,
  named,
  numberEquals,
  type Resource,
  shown,
  since
} from "./Resource.ts"

export const paymentIntents: Resource = {
  ...shown,
  name: "payment-intents",
  fields: fields(
    ["string!", "id"],
    ["string", "clinic_name clinic_id pet subscription wellnes_plan_name"],
    ["number", "payment_amount"],
    ["split!", "payment_split"],
    ["date-time", "scheduled_date captured_date"],
    ["boolean!", "paid isRefunded IsTest"],
    changed,
    ["boolean!", "isModifyCatchupPayment"],
    ["strings", "payment_modifications"],
    ["string", "processor_payment_intent_id"],
    ["integer", "attempt_number"],
    ["number", "original_amount_received refunded_amount"]
  ),
  filters: {
    id: equals("id"),
    subscription_id: equals("subscription"),
    pet_id: equals("pet"),
    clinic: equals("clinic_id"),
    updated_at_since: since("updated_at"),
    created_at_since: since("created_at")
  }
}

export const consumptionLogs: Resource = {
  ...shown,
  name: "consumption-logs",
  fields: fields(
    ["string!", "id"],
    ["string", "home_clinic servicing_clinic invoice_pims_id"],
    ["date-time", "invoice_date"],
    ["string", "invoice_line"],
    ["number", "invoice_line_aje_delta_discounted invoice_line_aje_delta_gross"],
    ["string", "invoice_line_pims_id pet pet_benefit product_code product_name"],
    ["number", "qty_available_on_plan qty_consumed qty_in_plan qty_out_of_plan qty_remaining"],
    ["number", "revenue_in_plan_total revenue_out_of_plan_total"],
    ["number", "revenue_to_recognize_total revenue_to_recognize_per_unit"],
    ["boolean!", "is_unlimited_benefit"],
    ["string", "subscription"],
    changed,
    ["boolean!", "is_deleted"]
  ),
  filters: {
    ...named("id pet subscription home_clinic product_code invoice_line"),
    invoice_line_id: equals("invoice_line"),
    include_deleted: includes("is_deleted"),
    modified_since: since("updated_at"),
    ...changedSince
  }
}

export const petBenefits: Resource = {
  ...shown,
  name: "pet-benefits",
  get: "contract",
  fields: fields(
    ["string!", "id"],
    ["string", "pet subscription benefit_name benefit_description wellness_plan_name"],
    ["boolean!", "is_addon"],
    ["number", "revenue_to_recognize_per_unit retail_value provided remaining"],
    ["boolean!", "is_unlimited"],
    ["number", "rounding_addition"],
    ["boolean!", "is_perk"],
    ["number", "in_kind_discount"],
    ["string", "parent_petbenefit"],
    changed,
    ["date-time", "inactivation_date activation_date"],
    ["strings!", "product_ids"]
  ),
  filters: {
    id: equals("id"),
    pet_id: equals("pet"),
    subscription_id: equals("subscription"),
    include_deleted: includes(),
    ...changedSince,
    created_before: before("created_at"),
    updated_before: before("updated_at")
  }
}

export const cancellationPaymentIntents: Resource = {
  ...shown,
  name: "cancellation-payment-intents",
  fields: fields(
    ["string!", "id"],
    ["string", "clinic_name clinic_id"],
    ["date-time", "date"],
    ["boolean!", "discounted"],
    ["number", "discounted_amount new_price percent_discount"],
    ["string", "pet subscription wellnes_plan_name"],
    ["number", "payments payment_amount"],
    ["string", "payment_or_refund paymentIntent_or_refund_id"],
    ["number", "total_benefits_consumed_at_retail_price total_benefits_consumed_at_discounted_price"],
    ["string", "reason"],
    ["number", "early_cancellation_fee"],
    ["strings!", "refund_ids"],
    ["boolean!", "isSucceeded IsTest"],
    changed
  ),
  filters: { ...named("id pet subscription"), clinic: equals("clinic_id"), ...changedSince }
}

export const charges: Resource = {
  ...shown,
  name: "charges",
  get: "contract",
  fields: fields(
    ["string!", "id"],
    ["string", "home_clinic servicing_clinic invoice"],
    ["number", "invoice_pims_id"],
    ["string", "payment_method_id status"],
    ["number", "original_amount current_amount net_paid paid_amount overpaid_amount"],
    ["number", "outstanding_balance refunded_amount"],
    changed
  ),
  filters: {
    id: equals("id"),
    clinic: equals("home_clinic", "servicing_clinic"),
    pet: equals(),
    status: equals("status"),
    invoice_id: equals("invoice"),
    invoice_pims_id: numberEquals("invoice_pims_id"),
    ...changedSince
  }
}

export const chargePayments: Resource = {
  ...shown,
  name: "charge-payments",
  search: "provisional",
  get: "contract",
  fields: fields(["string!", "id"], ["string", "currency status"], ["number", "amount"], ["string", "charge"], changed),
  filters: { ...named("id charge status"), ...changedSince }
}

export const chargeRefunds: Resource = {
  ...shown,
  name: "charge-refunds",
  fields: fields(["string!", "id"], ["date-time", "refund_date"], ["number", "amount"], ["string", "charge"], changed),
  filters: { ...named("id charge"), ...changedSince }
}

export const products: Resource = {
  ...shown,
  name: "products",
  orderedBy: "modified_at",
  fields: fields(
    ["string!", "id"],
    ["string", "clinic product_code pims_id product_name"],
    ["number", "retail_price member_price member_cancellation_price"],
    ["date-time!", "created_at modified_at"]
  ),
  filters: { ...named("id clinic product_code pims_id product_name"), modified_since: since("modified_at") }
}

export const clinics: Resource = {
  ...shown,
  name: "clinics",
  orderedBy: "created_at",
  fields: fields(["string!", "id"], ["string", "clinic_pims_id name time_zone url organization"]),
  filters: named("id clinic_pims_id name")
}
