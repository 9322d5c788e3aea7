/** The records that the contract shows: section 2, fields and filters in its order. */
import { before, changed, changedSince, equals, includes, type Resource, since, numberEquals } from "./Resource.ts"

export const paymentIntents: Resource = {
  name: "payment-intents",
  record: "contract",
  search: "contract",
  get: "provisional",
  orderedBy: "updated_at",
  fields: {
    id: "string!",
    clinic_name: "string",
    clinic_id: "string",
    pet: "string",
    subscription: "string",
    wellnes_plan_name: "string",
    payment_amount: "number",
    payment_split: "split!",
    scheduled_date: "date-time",
    captured_date: "date-time",
    paid: "boolean!",
    isRefunded: "boolean!",
    IsTest: "boolean!",
    created_at: "date-time!",
    updated_at: "date-time!",
    isModifyCatchupPayment: "boolean!",
    payment_modifications: "strings",
    processor_payment_intent_id: "string",
    attempt_number: "integer",
    original_amount_received: "number",
    refunded_amount: "number"
  },
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
  name: "consumption-logs",
  record: "contract",
  search: "contract",
  get: "provisional",
  orderedBy: "updated_at",
  fields: {
    id: "string!",
    home_clinic: "string",
    servicing_clinic: "string",
    invoice_pims_id: "string",
    invoice_date: "date-time",
    invoice_line: "string",
    invoice_line_aje_delta_discounted: "number",
    invoice_line_aje_delta_gross: "number",
    invoice_line_pims_id: "string",
    pet: "string",
    pet_benefit: "string",
    product_code: "string",
    product_name: "string",
    qty_available_on_plan: "number",
    qty_consumed: "number",
    qty_in_plan: "number",
    qty_out_of_plan: "number",
    qty_remaining: "number",
    revenue_in_plan_total: "number",
    revenue_out_of_plan_total: "number",
    revenue_to_recognize_total: "number",
    revenue_to_recognize_per_unit: "number",
    is_unlimited_benefit: "boolean!",
    subscription: "string",
    created_at: "date-time!",
    updated_at: "date-time!",
    is_deleted: "boolean!"
  },
  filters: {
    id: equals("id"),
    pet: equals("pet"),
    subscription: equals("subscription"),
    home_clinic: equals("home_clinic"),
    product_code: equals("product_code"),
    invoice_line: equals("invoice_line"),
    invoice_line_id: equals("invoice_line"),
    include_deleted: includes("is_deleted"),
    modified_since: since("updated_at"),
    created_at_since: since("created_at"),
    updated_at_since: since("updated_at")
  }
}

export const petBenefits: Resource = {
  name: "pet-benefits",
  record: "contract",
  search: "contract",
  get: "contract",
  orderedBy: "updated_at",
  fields: {
    id: "string!",
    pet: "string",
    subscription: "string",
    benefit_name: "string",
    benefit_description: "string",
    wellness_plan_name: "string",
    is_addon: "boolean!",
    revenue_to_recognize_per_unit: "number",
    retail_value: "number",
    provided: "number",
    remaining: "number",
    is_unlimited: "boolean!",
    rounding_addition: "number",
    is_perk: "boolean!",
    in_kind_discount: "number",
    parent_petbenefit: "string",
    created_at: "date-time!",
    updated_at: "date-time!",
    inactivation_date: "date-time",
    activation_date: "date-time",
    product_ids: "strings!"
  },
  filters: {
    id: equals("id"),
    pet_id: equals("pet"),
    subscription_id: equals("subscription"),
    include_deleted: includes(),
    created_at_since: since("created_at"),
    updated_at_since: since("updated_at"),
    created_before: before("created_at"),
    updated_before: before("updated_at")
  }
}

export const cancellationPaymentIntents: Resource = {
  name: "cancellation-payment-intents",
  record: "contract",
  search: "contract",
  get: "provisional",
  orderedBy: "updated_at",
  fields: {
    id: "string!",
    clinic_name: "string",
    clinic_id: "string",
    date: "date-time",
    discounted: "boolean!",
    discounted_amount: "number",
    new_price: "number",
    percent_discount: "number",
    pet: "string",
    subscription: "string",
    wellnes_plan_name: "string",
    payments: "number",
    payment_amount: "number",
    payment_or_refund: "string",
    paymentIntent_or_refund_id: "string",
    total_benefits_consumed_at_retail_price: "number",
    total_benefits_consumed_at_discounted_price: "number",
    reason: "string",
    early_cancellation_fee: "number",
    refund_ids: "strings!",
    isSucceeded: "boolean!",
    IsTest: "boolean!",
    created_at: "date-time!",
    updated_at: "date-time!"
  },
  filters: {
    id: equals("id"),
    pet: equals("pet"),
    subscription: equals("subscription"),
    clinic: equals("clinic_id"),
    ...changedSince
  }
}

export const charges: Resource = {
  name: "charges",
  record: "contract",
  search: "contract",
  get: "contract",
  orderedBy: "updated_at",
  fields: {
    id: "string!",
    home_clinic: "string",
    servicing_clinic: "string",
    invoice: "string",
    invoice_pims_id: "number",
    payment_method_id: "string",
    status: "string",
    original_amount: "number",
    current_amount: "number",
    net_paid: "number",
    paid_amount: "number",
    overpaid_amount: "number",
    outstanding_balance: "number",
    refunded_amount: "number",
    ...changed
  },
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
  name: "charge-payments",
  record: "contract",
  search: "provisional",
  get: "contract",
  orderedBy: "updated_at",
  fields: { id: "string!", currency: "string", status: "string", amount: "number", charge: "string", ...changed },
  filters: { id: equals("id"), charge: equals("charge"), status: equals("status"), ...changedSince }
}

export const chargeRefunds: Resource = {
  name: "charge-refunds",
  record: "contract",
  search: "contract",
  get: "provisional",
  orderedBy: "updated_at",
  fields: { id: "string!", refund_date: "date-time", amount: "number", charge: "string", ...changed },
  filters: { id: equals("id"), charge: equals("charge"), ...changedSince }
}

export const products: Resource = {
  name: "products",
  record: "contract",
  search: "contract",
  get: "provisional",
  orderedBy: "modified_at",
  fields: {
    id: "string!",
    clinic: "string",
    product_code: "string",
    pims_id: "string",
    product_name: "string",
    retail_price: "number",
    member_price: "number",
    member_cancellation_price: "number",
    created_at: "date-time!",
    modified_at: "date-time!"
  },
  filters: {
    id: equals("id"),
    clinic: equals("clinic"),
    product_code: equals("product_code"),
    pims_id: equals("pims_id"),
    product_name: equals("product_name"),
    modified_since: since("modified_at")
  }
}

export const clinics: Resource = {
  name: "clinics",
  record: "contract",
  search: "contract",
  get: "provisional",
  orderedBy: "created_at",
  fields: {
    id: "string!",
    clinic_pims_id: "string",
    name: "string",
    time_zone: "string",
    url: "string",
    organization: "string"
  },
  filters: { id: equals("id"), clinic_pims_id: equals("clinic_pims_id"), name: equals("name") }
}
