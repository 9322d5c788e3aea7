// Made by `npm run generate` from the OpenAPI documents of the APIs. Change these instead.

/** An organization: the owner of clinics and of all their records. Provisional: its shape may still change. */
export interface Organization {
  /**
   * Identifier of the record.
   * @example "org_oakridge"
   */
  id: string
  /**
   * Name of the organization.
   * @example "Oakridge Veterinary Group"
   */
  name: string | null
  /**
   * Time of the creation.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  created_at: string
  /**
   * Time of the last change. Results are ordered by it.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  updated_at: string
}

/** A clinic of the organization. */
export interface Clinic {
  /**
   * Identifier of the record.
   * @example "clinic_oakridge_01"
   */
  id: string
  /**
   * Identifier in the practice software.
   * @example "OAK-1"
   */
  clinic_pims_id: string | null
  /**
   * Name of the clinic.
   * @example "Oakridge Animal Hospital"
   */
  name: string | null
  /**
   * Time zone, as in the IANA database.
   * @example "America/Denver"
   */
  time_zone: string | null
  /**
   * Website of the clinic.
   * @example "https://oakridge.example"
   */
  url: string | null
  /**
   * The organization.
   * @example "org_oakridge"
   */
  organization: string | null
}

/** A product of a clinic. */
export interface Product {
  /**
   * Identifier of the record.
   * @example "product_oakridge_0001"
   */
  id: string
  /**
   * The clinic.
   * @example "clinic_oakridge_01"
   */
  clinic: string | null
  /**
   * Code of the product.
   * @example "EXAM-01"
   */
  product_code: string | null
  /**
   * Identifier in the practice software.
   * @example "P-1001"
   */
  pims_id: string | null
  /**
   * Name of the product.
   * @example "Wellness exam"
   */
  product_name: string | null
  /**
   * Price for clients without a plan.
   * @example 68
   */
  retail_price: number | null
  /**
   * Price for members of a plan.
   * @example 55
   */
  member_price: number | null
  /**
   * Price that a cancellation settles at.
   * @example 61.2
   */
  member_cancellation_price: number | null
  /**
   * Time of the creation.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  created_at: string
  /**
   * Time of the last change. Results are ordered by it.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  modified_at: string
}

/** An invoice of a clinic to a client. Provisional: its shape may still change. */
export interface Invoice {
  /**
   * Identifier of the record.
   * @example "invoice_oakridge_0001"
   */
  id: string
  /**
   * The clinic that holds the plan.
   * @example "clinic_oakridge_01"
   */
  home_clinic: string | null
  /**
   * The clinic that gave the service.
   * @example "clinic_oakridge_01"
   */
  servicing_clinic: string | null
  /**
   * The client.
   * @example "client_oakridge_0001"
   */
  client_id: string | null
  /**
   * The pet.
   * @example "pet_oakridge_0001"
   */
  pet: string | null
  /**
   * Identifier of the invoice in the practice software.
   * @example "100001"
   */
  invoice_pims_id: string | null
  /**
   * Date of the invoice.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  invoice_date: string | null
  /**
   * State of the invoice.
   * @example "paid"
   */
  status: string | null
  /**
   * Sum of the lines.
   * @example 130
   */
  subtotal: number | null
  /**
   * Discount.
   * @example 10
   */
  discount: number | null
  /**
   * Tax.
   * @example 9.6
   */
  tax: number | null
  /**
   * Amount to pay.
   * @example 129.6
   */
  total: number | null
  /** True if the invoice was deleted. */
  is_deleted: boolean
  /**
   * Time of the deletion.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  deleted_at: string | null
  /**
   * Time of the creation.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  created_at: string
  /**
   * Time of the last change. Results are ordered by it.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  updated_at: string
}

/** One line of an invoice. Provisional: its shape may still change. */
export interface InvoiceLine {
  /**
   * Identifier of the record.
   * @example "line_oakridge_0001_1"
   */
  id: string
  /**
   * The invoice.
   * @example "invoice_oakridge_0001"
   */
  invoice: string | null
  /**
   * The clinic.
   * @example "clinic_oakridge_01"
   */
  clinic: string | null
  /**
   * The pet.
   * @example "pet_oakridge_0001"
   */
  pet: string | null
  /**
   * Identifier of the line in the practice software.
   * @example "100001-1"
   */
  invoice_line_pims_id: string | null
  /**
   * Code of the product.
   * @example "EXAM-01"
   */
  product_code: string | null
  /**
   * Name of the product.
   * @example "Wellness exam"
   */
  product_name: string | null
  /**
   * Quantity.
   * @example 1
   */
  quantity: number | null
  /**
   * Price of a unit.
   * @example 68
   */
  unit_price: number | null
  /**
   * Discount.
   * @example 13
   */
  discount: number | null
  /**
   * Amount of the line.
   * @example 55
   */
  total: number | null
  /** True if the line was deleted. */
  is_deleted: boolean
  /**
   * Time of the deletion.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  deleted_at: string | null
  /**
   * Time of the creation.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  created_at: string
  /**
   * Time of the last change. Results are ordered by it.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  updated_at: string
}

/** The use of a benefit by one line of an invoice. */
export interface ConsumptionLog {
  /**
   * Identifier of the record.
   * @example "consumption_oakridge_0001"
   */
  id: string
  /**
   * The clinic that holds the plan.
   * @example "clinic_oakridge_01"
   */
  home_clinic: string | null
  /**
   * The clinic that gave the service.
   * @example "clinic_oakridge_01"
   */
  servicing_clinic: string | null
  /**
   * Identifier of the invoice in the practice software.
   * @example "100001"
   */
  invoice_pims_id: string | null
  /**
   * Date of the invoice.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  invoice_date: string | null
  /**
   * The invoice line.
   * @example "line_oakridge_0001_1"
   */
  invoice_line: string | null
  /**
   * Adjusting entry of the line, discounted.
   * @example -4.25
   */
  invoice_line_aje_delta_discounted: number | null
  /**
   * Adjusting entry of the line, gross.
   * @example -5
   */
  invoice_line_aje_delta_gross: number | null
  /**
   * Identifier of the invoice line in the practice software.
   * @example "100001-1"
   */
  invoice_line_pims_id: string | null
  /**
   * The pet.
   * @example "pet_oakridge_0001"
   */
  pet: string | null
  /**
   * The benefit that was used.
   * @example "benefit_oakridge_0001"
   */
  pet_benefit: string | null
  /**
   * Code of the product.
   * @example "EXAM-01"
   */
  product_code: string | null
  /**
   * Name of the product.
   * @example "Wellness exam"
   */
  product_name: string | null
  /**
   * Quantity available on the plan before.
   * @example 2
   */
  qty_available_on_plan: number | null
  /**
   * Quantity used.
   * @example 1
   */
  qty_consumed: number | null
  /**
   * Quantity covered by the plan.
   * @example 1
   */
  qty_in_plan: number | null
  /**
   * Quantity not covered by the plan.
   * @example 0
   */
  qty_out_of_plan: number | null
  /**
   * Quantity left on the plan.
   * @example 1
   */
  qty_remaining: number | null
  /**
   * Revenue covered by the plan.
   * @example 55
   */
  revenue_in_plan_total: number | null
  /**
   * Revenue not covered by the plan.
   * @example 0
   */
  revenue_out_of_plan_total: number | null
  /**
   * Revenue to recognize.
   * @example 55
   */
  revenue_to_recognize_total: number | null
  /**
   * Revenue to recognize for each unit.
   * @example 55
   */
  revenue_to_recognize_per_unit: number | null
  /** True if the benefit has no limit. */
  is_unlimited_benefit: boolean
  /**
   * The subscription.
   * @example "subscription_oakridge_0001"
   */
  subscription: string | null
  /**
   * Time of the creation.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  created_at: string
  /**
   * Time of the last change. Results are ordered by it.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  updated_at: string
  /** True if the log was deleted. */
  is_deleted: boolean
}

/** A benefit that a plan grants a pet. */
export interface PetBenefit {
  /**
   * Identifier of the record.
   * @example "benefit_oakridge_0001"
   */
  id: string
  /**
   * The pet.
   * @example "pet_oakridge_0001"
   */
  pet: string | null
  /**
   * The subscription that grants it.
   * @example "subscription_oakridge_0001"
   */
  subscription: string | null
  /**
   * Name of the benefit.
   * @example "Wellness exam"
   */
  benefit_name: string | null
  /**
   * The services that the benefit covers.
   * @example "Two wellness exams a year"
   */
  benefit_description: string | null
  /**
   * Name of the plan.
   * @example "Gold Canine Wellness"
   */
  wellness_plan_name: string | null
  /** True if it was added to the plan. */
  is_addon: boolean
  /**
   * Revenue to recognize for each unit.
   * @example 55
   */
  revenue_to_recognize_per_unit: number | null
  /**
   * Retail value of a unit.
   * @example 68
   */
  retail_value: number | null
  /**
   * Quantity granted.
   * @example 2
   */
  provided: number | null
  /**
   * Quantity left.
   * @example 1
   */
  remaining: number | null
  /** True if it has no limit. */
  is_unlimited: boolean
  /**
   * Addition that evens out rounding.
   * @example 0.01
   */
  rounding_addition: number | null
  /** True if it is a perk. */
  is_perk: boolean
  /**
   * Discount in kind.
   * @example 0
   */
  in_kind_discount: number | null
  /**
   * The benefit that it is part of.
   * @example "benefit_oakridge_0001"
   */
  parent_petbenefit: string | null
  /**
   * Time of the creation.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  created_at: string
  /**
   * Time of the last change. Results are ordered by it.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  updated_at: string
  /**
   * Time of the deactivation.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  inactivation_date: string | null
  /**
   * Time of the activation.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  activation_date: string | null
  /**
   * The products that it covers.
   * @example ["product_oakridge_0001"]
   */
  product_ids: Array<string>
}

/** The amount that a client owes for an invoice, and the payments. */
export interface Charge {
  /**
   * Identifier of the record.
   * @example "charge_oakridge_0001"
   */
  id: string
  /**
   * The clinic that holds the plan.
   * @example "clinic_oakridge_01"
   */
  home_clinic: string | null
  /**
   * The clinic that gave the service.
   * @example "clinic_oakridge_01"
   */
  servicing_clinic: string | null
  /**
   * The invoice.
   * @example "invoice_oakridge_0001"
   */
  invoice: string | null
  /**
   * Number of the invoice in the practice software.
   * @example 100001
   */
  invoice_pims_id: number | null
  /**
   * The payment method.
   * @example "pm_1Oak0001"
   */
  payment_method_id: string | null
  /**
   * State of the charge.
   * @example "paid"
   */
  status: string | null
  /**
   * Amount at first.
   * @example 120
   */
  original_amount: number | null
  /**
   * Amount after adjustments.
   * @example 110
   */
  current_amount: number | null
  /**
   * Amount paid less refunds.
   * @example 110
   */
  net_paid: number | null
  /**
   * Amount paid.
   * @example 110
   */
  paid_amount: number | null
  /**
   * Amount paid beyond what was owed.
   * @example 0
   */
  overpaid_amount: number | null
  /**
   * Amount still owed.
   * @example 0
   */
  outstanding_balance: number | null
  /**
   * Amount refunded.
   * @example 0
   */
  refunded_amount: number | null
  /**
   * Time of the creation.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  created_at: string
  /**
   * Time of the last change. Results are ordered by it.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  updated_at: string
}

/** A payment towards a charge. */
export interface ChargePayment {
  /**
   * Identifier of the record.
   * @example "charge_payment_oakridge_0001"
   */
  id: string
  /**
   * Currency, as ISO 4217.
   * @example "usd"
   */
  currency: string | null
  /**
   * State of the payment.
   * @example "succeeded"
   */
  status: string | null
  /**
   * Amount of the payment.
   * @example 110
   */
  amount: number | null
  /**
   * The charge.
   * @example "charge_oakridge_0001"
   */
  charge: string | null
  /**
   * Time of the creation.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  created_at: string
  /**
   * Time of the last change. Results are ordered by it.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  updated_at: string
}

/** A correction of a charge's amount. Provisional: its shape may still change. */
export interface ChargeAdjustment {
  /**
   * Identifier of the record.
   * @example "charge_adjustment_oakridge_0001"
   */
  id: string
  /**
   * The charge.
   * @example "charge_oakridge_0001"
   */
  charge: string | null
  /**
   * Amount of the correction.
   * @example -10
   */
  amount: number | null
  /**
   * Reason of the correction.
   * @example "Courtesy"
   */
  reason: string | null
  /**
   * Time of the creation.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  created_at: string
  /**
   * Time of the last change. Results are ordered by it.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  updated_at: string
}

/** Money returned on a charge. */
export interface ChargeRefund {
  /**
   * Identifier of the record.
   * @example "charge_refund_oakridge_0001"
   */
  id: string
  /**
   * Time of the refund.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  refund_date: string | null
  /**
   * Amount of the refund.
   * @example 20
   */
  amount: number | null
  /**
   * The charge.
   * @example "charge_oakridge_0001"
   */
  charge: string | null
  /**
   * Time of the creation.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  created_at: string
  /**
   * Time of the last change. Results are ordered by it.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  updated_at: string
}

/** The schedule of payments of a subscription. Provisional: its shape may still change. */
export interface PaymentPlan {
  /**
   * Identifier of the record.
   * @example "payment_plan_oakridge_0001"
   */
  id: string
  /**
   * The subscription.
   * @example "subscription_oakridge_0001"
   */
  subscription: string | null
  /**
   * The pet.
   * @example "pet_oakridge_0001"
   */
  pet: string | null
  /**
   * The clinic.
   * @example "clinic_oakridge_01"
   */
  clinic: string | null
  /**
   * State of the plan.
   * @example "active"
   */
  status: string | null
  /**
   * Amount of a payment.
   * @example 42.5
   */
  payment_amount: number | null
  /**
   * Number of payments.
   * @example 12
   */
  number_of_payments: number | null
  /**
   * Number of payments made so far.
   * @example 3
   */
  payments_made: number | null
  /**
   * Frequency of the payments.
   * @example "monthly"
   */
  frequency: string | null
  /**
   * Due date of the next payment.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  next_payment_date: string | null
  /**
   * Time of the creation.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  created_at: string
  /**
   * Time of the last change. Results are ordered by it.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  updated_at: string
}

/** A payment that a plan schedules, and its outcome. */
export interface PaymentIntent {
  /**
   * Identifier of the record.
   * @example "payment_intent_oakridge_0001"
   */
  id: string
  /**
   * Name of the clinic.
   * @example "Oakridge Animal Hospital"
   */
  clinic_name: string | null
  /**
   * The clinic.
   * @example "clinic_oakridge_01"
   */
  clinic_id: string | null
  /**
   * The pet on the plan.
   * @example "pet_oakridge_0001"
   */
  pet: string | null
  /**
   * The subscription that is paid for.
   * @example "subscription_oakridge_0001"
   */
  subscription: string | null
  /**
   * Plan name, species and the clinic's plan header, joined by one space; blank parts are left out.
   * @example "Gold Canine Wellness"
   */
  wellnes_plan_name: string | null
  /**
   * Amount of the payment.
   * @example 42.5
   */
  payment_amount: number | null
  /** The amount by where each portion settles. */
  payment_split: {
    /**
     * Portion that settles with the platform.
     * @example 2.5
     */
    to_Platform: number | null
    /**
     * Portion that settles with the payment processor.
     * @example 1.25
     */
    to_Processor: number | null
    /**
     * Portion that settles with the clinic.
     * @example 38.75
     */
    to_Clinic: number | null
  }
  /**
   * Due date.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  scheduled_date: string | null
  /**
   * Time of the capture.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  captured_date: string | null
  /** True if it was paid. */
  paid: boolean
  /** True if it was refunded. */
  isRefunded: boolean
  /** True for a test payment. */
  IsTest: boolean
  /**
   * Time of the creation.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  created_at: string
  /**
   * Time of the last change. Results are ordered by it.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  updated_at: string
  /** True if it catches up on a modified plan. */
  isModifyCatchupPayment: boolean
  /**
   * The modifications of the payment. Null, never an empty list, if there are none.
   * @example null
   */
  payment_modifications: Array<string> | null
  /**
   * Identifier at the payment processor.
   * @example "pi_3Oak0001"
   */
  processor_payment_intent_id: string | null
  /**
   * Number of attempts to collect the payment.
   * @example 1
   */
  attempt_number: number | null
  /**
   * Amount received at first.
   * @example 42.5
   */
  original_amount_received: number | null
  /**
   * Amount refunded since.
   * @example 0
   */
  refunded_amount: number | null
}

/** The settlement of a cancelled plan. */
export interface CancellationPaymentIntent {
  /**
   * Identifier of the record.
   * @example "cancellation_oakridge_0001"
   */
  id: string
  /**
   * Name of the clinic.
   * @example "Oakridge Animal Hospital"
   */
  clinic_name: string | null
  /**
   * The clinic.
   * @example "clinic_oakridge_01"
   */
  clinic_id: string | null
  /**
   * Date of the cancellation.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  date: string | null
  /** True if the settlement was discounted. */
  discounted: boolean
  /**
   * Amount of the discount.
   * @example 10
   */
  discounted_amount: number | null
  /**
   * Price after the discount.
   * @example 90
   */
  new_price: number | null
  /**
   * Discount in percent.
   * @example 10
   */
  percent_discount: number | null
  /**
   * The pet on the plan.
   * @example "pet_oakridge_0001"
   */
  pet: string | null
  /**
   * The subscription that was cancelled.
   * @example "subscription_oakridge_0001"
   */
  subscription: string | null
  /**
   * Plan name, species and the clinic's plan header, joined by one space; blank parts are left out.
   * @example "Gold Canine Wellness"
   */
  wellnes_plan_name: string | null
  /**
   * Sum of the payments made.
   * @example 127.5
   */
  payments: number | null
  /**
   * Amount to pay or to refund.
   * @example 90
   */
  payment_amount: number | null
  /**
   * `payment` or `refund`: the direction of the amount.
   * @example "payment"
   */
  payment_or_refund: string | null
  /**
   * Identifier of the payment or refund.
   * @example "pi_3Oak0001"
   */
  paymentIntent_or_refund_id: string | null
  /**
   * Benefits used, at retail price.
   * @example 230
   */
  total_benefits_consumed_at_retail_price: number | null
  /**
   * Benefits used, at the discounted price.
   * @example 207
   */
  total_benefits_consumed_at_discounted_price: number | null
  /**
   * Reason of the cancellation.
   * @example "Moved away"
   */
  reason: string | null
  /**
   * Fee for cancelling early.
   * @example 25
   */
  early_cancellation_fee: number | null
  /**
   * The refunds made.
   * @example ["re_3Oak0001"]
   */
  refund_ids: Array<string>
  /** True if the settlement succeeded. */
  isSucceeded: boolean
  /** True for a test. */
  IsTest: boolean
  /**
   * Time of the creation.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  created_at: string
  /**
   * Time of the last change. Results are ordered by it.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  updated_at: string
}

/** A pet of a client. Provisional: its shape may still change. */
export interface Pet {
  /**
   * Identifier of the record.
   * @example "pet_oakridge_0001"
   */
  id: string
  /**
   * Name of the pet.
   * @example "Biscuit"
   */
  name: string | null
  /**
   * Species.
   * @example "Canine"
   */
  species: string | null
  /**
   * Breed.
   * @example "Beagle"
   */
  breed: string | null
  /**
   * Sex.
   * @example "female"
   */
  sex: string | null
  /**
   * Date of birth.
   * @example "2019-04-12"
   */
  date_of_birth: string | null
  /**
   * The clinic.
   * @example "clinic_oakridge_01"
   */
  clinic: string | null
  /**
   * The client.
   * @example "client_oakridge_0001"
   */
  client_id: string | null
  /**
   * Time of the creation.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  created_at: string
  /**
   * Time of the last change. Results are ordered by it.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  updated_at: string
}

/** A pet on a wellness plan. Provisional: its shape may still change. */
export interface Subscription {
  /**
   * Identifier of the record.
   * @example "subscription_oakridge_0001"
   */
  id: string
  /**
   * The pet.
   * @example "pet_oakridge_0001"
   */
  pet: string | null
  /**
   * The clinic.
   * @example "clinic_oakridge_01"
   */
  clinic: string | null
  /**
   * Name of the plan.
   * @example "Gold"
   */
  plan_name: string | null
  /**
   * State of the subscription.
   * @example "active"
   */
  status: string | null
  /**
   * Start of the subscription.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  start_date: string | null
  /**
   * End of the subscription.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  end_date: string | null
  /**
   * Time of the cancellation.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  cancelled_at: string | null
  /**
   * Price of a billing period.
   * @example 42.5
   */
  price: number | null
  /**
   * Frequency of billing.
   * @example "monthly"
   */
  billing_frequency: string | null
  /** True if it renews automatically. */
  auto_renew: boolean
  /**
   * Time of the creation.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  created_at: string
  /**
   * Time of the last change. Results are ordered by it.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  updated_at: string
}

/** An object of the payment processor, with all the fields that the processor returns. Provisional: its shape may still change. */
export interface PspObject {
  /**
   * Identifier at the processor.
   * @example "txn_oakridge_0001"
   */
  id: string
  /**
   * The type of the object.
   * @example "balance_transaction"
   */
  object: string
  /**
   * Time of creation, as Unix time in seconds.
   * @example 1767600000
   */
  created: number
  [field: string]: unknown
}

/** A delivery of invoice deletions, and its outcome. Provisional: its shape may still change. */
export interface DeletionTask {
  /**
   * The `task_id` of the delivery's receipt.
   * @example "81b8ad4e-04b1-5faa-8a32-d5097856a418"
   */
  task_id: string
  /**
   * The Idempotency-Key of the delivery.
   * @example "demo-delivery-1"
   */
  idempotency_key: string
  /** `scheduled`: waits for its due time or its next attempt. `running`: claimed by a worker. `completed`: has run; `outcome` counts the deletions. `dead`: every attempt failed; nothing is deleted until an operator replays it. `cancelled`: cancelled by an operator; never runs. */
  state: "scheduled" | "running" | "completed" | "dead" | "cancelled"
  /**
   * Time at which the delivery was received.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  received_at: string
  /**
   * Time at which the deletion is due. Results are ordered by it.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  scheduled_for: string
  /**
   * Start of the first attempt.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  started_at: string | null
  /**
   * Time of completion, or of the last failed attempt.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  finished_at: string | null
  /**
   * The number of attempts so far, at most 8. In a scheduled task, all of them failed.
   * @example 1
   */
  attempts: number
  /**
   * The number of invoices in the delivery, including duplicates.
   * @example 1
   */
  invoices_count: number
  /**
   * The number of invoice lines in the delivery, including duplicates.
   * @example 1
   */
  invoice_lines_count: number
  /** Counts of deleted and skipped items. Null until the task is completed. */
  outcome: DeletionOutcome | null
  /**
   * The number of items that were not found and are deleted when their records arrive, if their other ids match. Drops to 0 when they arrive, expire (after 90 days, unless the operator sets another time) or are undone by an operator.
   * @example 0
   */
  remembered: number
}

/** The number of items that the task deleted, and skipped by reason. Duplicates count once. Provisional: its shape may still change. */
export interface DeletionOutcome {
  invoices: {
    /**
     * Invoices that were deleted.
     * @example 1
     */
    deleted: number
    /**
     * The organization had no such invoice; it is deleted on arrival, while it is `remembered`.
     * @example 0
     */
    not_found: number
    /**
     * `clinic_id` is neither the home nor the servicing clinic of the invoice.
     * @example 0
     */
    clinic_mismatch: number
    /**
     * `client_id` is not the client of the invoice.
     * @example 0
     */
    client_mismatch: number
  }
  invoice_lines: {
    /**
     * Lines that an item names, and that were deleted.
     * @example 1
     */
    deleted: number
    /**
     * The organization had no such line; it is deleted on arrival, while it is `remembered`.
     * @example 0
     */
    not_found: number
    /**
     * `invoice_id` is not the invoice of the line.
     * @example 0
     */
    invoice_mismatch: number
    /**
     * `clinic_id` is not the clinic of the line.
     * @example 0
     */
    clinic_mismatch: number
  }
  /**
   * Lines that were deleted with their invoices.
   * @example 3
   */
  lines_of_invoices: number
}

/** A page of changes. */
export interface ChangesPage<Item> {
  /** The last committed state of new and changed records: upsert each by its `id`. */
  body: Array<Item>
  /**
   * The ids of deleted records. Ignore ids that you never had.
   * @example []
   */
  removed: Array<string>
  /**
   * The position for the next request. Save it together with the records in this response.
   * @example "MS41YjBjOWQxZS4yZjdhNmM0MC4xLnhjLmh2MDVjLm5oLmNoYXJnZV9vYWtyaWRnZV8wMDEw919jq159"
   */
  cursor: string
  /** True if more changes are available now. */
  has_more: boolean
  /** The delay in seconds of a replica behind an open transaction; 0 if there is none. */
  lag: number
  /** True once the first load is complete: you have every record that existed when you began, except those changed since. */
  complete: boolean
}

/** The next changes of all requested resources, in order. Provisional: its shape may still change. */
export interface AllChanges {
  /** The changes. Apply them in order. */
  body: Array<ClinicsWritten | ProductsWritten | InvoicesWritten | InvoiceLinesWritten | ConsumptionLogsWritten | PetBenefitsWritten | ChargesWritten | ChargePaymentsWritten | ChargeAdjustmentsWritten | ChargeRefundsWritten | PaymentPlansWritten | PaymentIntentsWritten | CancellationPaymentIntentsWritten | PetsWritten | SubscriptionsWritten | RecordRemoved | ResourceReset>
  /**
   * The position for the next request. Save it together with the records in this response.
   * @example "MS41YjBjOWQxZS4yZjdhNmM0MC4xLnhjLmh2MDVjLm5oLmNoYXJnZV9vYWtyaWRnZV8wMDEw919jq159"
   */
  cursor: string
  /** True if more changes are available now. */
  has_more: boolean
  /** True if a copy with every response up to this one equals a past state of the database: each invoice with all its lines, each payment with its charge. */
  is_consistent: boolean
  /**
   * A version of the records' fields. It changes when a field or a resource is added.
   * @example "a1b2c3d4"
   */
  schema: string
  /** The delay in seconds of a replica behind an open transaction; 0 if there is none. */
  lag: number
}

/** Provisional: its shape may still change. */
export interface ClinicsWritten {
  resource: "clinics"
  record: Clinic
}

/** Provisional: its shape may still change. */
export interface ProductsWritten {
  resource: "products"
  record: Product
}

/** Provisional: its shape may still change. */
export interface InvoicesWritten {
  resource: "invoices"
  record: Invoice
}

/** Provisional: its shape may still change. */
export interface InvoiceLinesWritten {
  resource: "invoice-lines"
  record: InvoiceLine
}

/** Provisional: its shape may still change. */
export interface ConsumptionLogsWritten {
  resource: "consumption-logs"
  record: ConsumptionLog
}

/** Provisional: its shape may still change. */
export interface PetBenefitsWritten {
  resource: "pet-benefits"
  record: PetBenefit
}

/** Provisional: its shape may still change. */
export interface ChargesWritten {
  resource: "charges"
  record: Charge
}

/** Provisional: its shape may still change. */
export interface ChargePaymentsWritten {
  resource: "charge-payments"
  record: ChargePayment
}

/** Provisional: its shape may still change. */
export interface ChargeAdjustmentsWritten {
  resource: "charge-adjustments"
  record: ChargeAdjustment
}

/** Provisional: its shape may still change. */
export interface ChargeRefundsWritten {
  resource: "charge-refunds"
  record: ChargeRefund
}

/** Provisional: its shape may still change. */
export interface PaymentPlansWritten {
  resource: "payment-plans"
  record: PaymentPlan
}

/** Provisional: its shape may still change. */
export interface PaymentIntentsWritten {
  resource: "payment-intents"
  record: PaymentIntent
}

/** Provisional: its shape may still change. */
export interface CancellationPaymentIntentsWritten {
  resource: "cancellation-payment-intents"
  record: CancellationPaymentIntent
}

/** Provisional: its shape may still change. */
export interface PetsWritten {
  resource: "pets"
  record: Pet
}

/** Provisional: its shape may still change. */
export interface SubscriptionsWritten {
  resource: "subscriptions"
  record: Subscription
}

/** Provisional: its shape may still change. */
export interface RecordRemoved {
  resource: "clinics" | "products" | "invoices" | "invoice-lines" | "consumption-logs" | "pet-benefits" | "charges" | "charge-payments" | "charge-adjustments" | "charge-refunds" | "payment-plans" | "payment-intents" | "cancellation-payment-intents" | "pets" | "subscriptions"
  /** The id of a deleted record. Ignore it if you never had the record. */
  removed: string
}

/** Provisional: its shape may still change. */
export interface ResourceReset {
  resource: "clinics" | "products" | "invoices" | "invoice-lines" | "consumption-logs" | "pet-benefits" | "charges" | "charge-payments" | "charge-adjustments" | "charge-refunds" | "payment-plans" | "payment-intents" | "cancellation-payment-intents" | "pets" | "subscriptions"
  /** The table was emptied, or the resource is new to your cursor: its records follow. Once `has_more` is false, delete the records that did not arrive. */
  reset: true
}

/** A page of objects of the payment processor. */
export interface LivePage<Item> {
  /** The processor's objects, unchanged, newest first. */
  data: Array<Item>
  /** True if there is another page. */
  has_more: boolean
}

export interface ValidationError {
  /** The location of the fault: `body`, `header` or `query`, then names and array positions. Names over 64 characters are truncated. */
  loc: Array<string | number>
  /** A human-readable message. */
  msg: string
  /** The kind of the fault, such as `string_type`. */
  type: string
}

export interface ClinicsSearchRequest {
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
  /**
   * Maximum number of records to return. From 1 to 1000.
   * @default 100
   */
  limit?: number | undefined
  /**
   * The number of records to skip.
   * @default 0
   */
  offset?: number | undefined
  /**
   * Only records whose `id` is exactly this.
   * @example "clinic_oakridge_01"
   */
  id?: string | undefined
  /**
   * Only records whose `clinic_pims_id` is exactly this.
   * @example "OAK-1"
   */
  clinic_pims_id?: string | undefined
  /**
   * Only records whose `name` is exactly this.
   * @example "Oakridge Animal Hospital"
   */
  name?: string | undefined
}

export interface ProductsSearchRequest {
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
  /**
   * Maximum number of records to return. From 1 to 1000.
   * @default 100
   */
  limit?: number | undefined
  /**
   * The number of records to skip.
   * @default 0
   */
  offset?: number | undefined
  /**
   * Only records whose `id` is exactly this.
   * @example "product_oakridge_0001"
   */
  id?: string | undefined
  /**
   * Only records whose `clinic` is exactly this.
   * @example "clinic_oakridge_01"
   */
  clinic?: string | undefined
  /**
   * Only records whose `product_code` is exactly this.
   * @example "EXAM-01"
   */
  product_code?: string | undefined
  /**
   * Only records whose `pims_id` is exactly this.
   * @example "P-1001"
   */
  pims_id?: string | undefined
  /**
   * Only records whose `product_name` is exactly this.
   * @example "Wellness exam"
   */
  product_name?: string | undefined
  /**
   * Only records whose `modified_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  modified_since?: string | Date | undefined
}

export interface InvoicesSearchRequest {
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
  /**
   * Maximum number of records to return. From 1 to 1000.
   * @default 100
   */
  limit?: number | undefined
  /**
   * The number of records to skip.
   * @default 0
   */
  offset?: number | undefined
  /**
   * Only records whose `id` is exactly this.
   * @example "invoice_oakridge_0001"
   */
  id?: string | undefined
  /**
   * Only records whose `home_clinic` or `servicing_clinic` is exactly this.
   * @example "clinic_oakridge_01"
   */
  clinic?: string | undefined
  /**
   * Only records whose `client_id` is exactly this.
   * @example "client_oakridge_0001"
   */
  client_id?: string | undefined
  /**
   * Only records whose `pet` is exactly this.
   * @example "pet_oakridge_0001"
   */
  pet?: string | undefined
  /**
   * Only records whose `invoice_pims_id` is exactly this.
   * @example "100001"
   */
  invoice_pims_id?: string | undefined
  /**
   * Only records whose `status` is exactly this.
   * @example "paid"
   */
  status?: string | undefined
  /**
   * Includes deleted invoices. Default false.
   * @default false
   */
  include_deleted?: boolean | undefined
  /**
   * Only records whose `created_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  created_at_since?: string | Date | undefined
  /**
   * Only records whose `updated_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  updated_at_since?: string | Date | undefined
}

export interface InvoiceLinesSearchRequest {
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
  /**
   * Maximum number of records to return. From 1 to 1000.
   * @default 100
   */
  limit?: number | undefined
  /**
   * The number of records to skip.
   * @default 0
   */
  offset?: number | undefined
  /**
   * Only records whose `id` is exactly this.
   * @example "line_oakridge_0001_1"
   */
  id?: string | undefined
  /**
   * Only records whose `invoice` is exactly this.
   * @example "invoice_oakridge_0001"
   */
  invoice?: string | undefined
  /**
   * Only records whose `clinic` is exactly this.
   * @example "clinic_oakridge_01"
   */
  clinic?: string | undefined
  /**
   * Only records whose `pet` is exactly this.
   * @example "pet_oakridge_0001"
   */
  pet?: string | undefined
  /**
   * Only records whose `product_code` is exactly this.
   * @example "EXAM-01"
   */
  product_code?: string | undefined
  /**
   * Includes deleted lines. Default false.
   * @default false
   */
  include_deleted?: boolean | undefined
  /**
   * Only records whose `created_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  created_at_since?: string | Date | undefined
  /**
   * Only records whose `updated_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  updated_at_since?: string | Date | undefined
}

export interface ConsumptionLogsSearchRequest {
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
  /**
   * Maximum number of records to return. From 1 to 1000.
   * @default 100
   */
  limit?: number | undefined
  /**
   * The number of records to skip.
   * @default 0
   */
  offset?: number | undefined
  /**
   * Only records whose `id` is exactly this.
   * @example "consumption_oakridge_0001"
   */
  id?: string | undefined
  /**
   * Only records whose `pet` is exactly this.
   * @example "pet_oakridge_0001"
   */
  pet?: string | undefined
  /**
   * Only records whose `subscription` is exactly this.
   * @example "subscription_oakridge_0001"
   */
  subscription?: string | undefined
  /**
   * Only records whose `home_clinic` is exactly this.
   * @example "clinic_oakridge_01"
   */
  home_clinic?: string | undefined
  /**
   * Only records whose `product_code` is exactly this.
   * @example "EXAM-01"
   */
  product_code?: string | undefined
  /**
   * Only records whose `invoice_line` is exactly this.
   * @example "line_oakridge_0001_1"
   */
  invoice_line?: string | undefined
  /**
   * Only records whose `invoice_line` is exactly this.
   * @example "line_oakridge_0001_1"
   */
  invoice_line_id?: string | undefined
  /**
   * Includes deleted logs. Default false.
   * @default false
   */
  include_deleted?: boolean | undefined
  /**
   * Only records whose `updated_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  modified_since?: string | Date | undefined
  /**
   * Only records whose `created_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  created_at_since?: string | Date | undefined
  /**
   * Only records whose `updated_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  updated_at_since?: string | Date | undefined
}

export interface PetBenefitsSearchRequest {
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
  /**
   * Maximum number of records to return. From 1 to 1000.
   * @default 100
   */
  limit?: number | undefined
  /**
   * The number of records to skip.
   * @default 0
   */
  offset?: number | undefined
  /**
   * Only records whose `id` is exactly this.
   * @example "benefit_oakridge_0001"
   */
  id?: string | undefined
  /**
   * Only records whose `pet` is exactly this.
   * @example "pet_oakridge_0001"
   */
  pet_id?: string | undefined
  /**
   * Only records whose `subscription` is exactly this.
   * @example "subscription_oakridge_0001"
   */
  subscription_id?: string | undefined
  /**
   * Includes benefits that were removed from their plan. Default false.
   * @default false
   */
  include_deleted?: boolean | undefined
  /**
   * Only records whose `created_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  created_at_since?: string | Date | undefined
  /**
   * Only records whose `updated_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  updated_at_since?: string | Date | undefined
  /**
   * Only records whose `created_at` is before this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  created_before?: string | Date | undefined
  /**
   * Only records whose `updated_at` is before this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  updated_before?: string | Date | undefined
}

export interface ChargesSearchRequest {
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
  /**
   * Maximum number of records to return. From 1 to 1000.
   * @default 100
   */
  limit?: number | undefined
  /**
   * The number of records to skip.
   * @default 0
   */
  offset?: number | undefined
  /**
   * Only records whose `id` is exactly this.
   * @example "charge_oakridge_0001"
   */
  id?: string | undefined
  /**
   * Only records whose `home_clinic` or `servicing_clinic` is exactly this.
   * @example "clinic_oakridge_01"
   */
  clinic?: string | undefined
  /** Only records whose `pet` is exactly this. */
  pet?: string | undefined
  /**
   * Only records whose `status` is exactly this.
   * @example "paid"
   */
  status?: string | undefined
  /**
   * Only records whose `invoice` is exactly this.
   * @example "invoice_oakridge_0001"
   */
  invoice_id?: string | undefined
  /**
   * Only records whose `invoice_pims_id` is this number, written as `100001`, `-4.50` or `1e-7`.
   * @example "100001"
   */
  invoice_pims_id?: string | undefined
  /**
   * Only records whose `created_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  created_at_since?: string | Date | undefined
  /**
   * Only records whose `updated_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  updated_at_since?: string | Date | undefined
}

export interface ChargePaymentsSearchRequest {
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
  /**
   * Maximum number of records to return. From 1 to 1000.
   * @default 100
   */
  limit?: number | undefined
  /**
   * The number of records to skip.
   * @default 0
   */
  offset?: number | undefined
  /**
   * Only records whose `id` is exactly this.
   * @example "charge_payment_oakridge_0001"
   */
  id?: string | undefined
  /**
   * Only records whose `charge` is exactly this.
   * @example "charge_oakridge_0001"
   */
  charge?: string | undefined
  /**
   * Only records whose `status` is exactly this.
   * @example "succeeded"
   */
  status?: string | undefined
  /**
   * Only records whose `created_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  created_at_since?: string | Date | undefined
  /**
   * Only records whose `updated_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  updated_at_since?: string | Date | undefined
}

export interface ChargeAdjustmentsSearchRequest {
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
  /**
   * Maximum number of records to return. From 1 to 1000.
   * @default 100
   */
  limit?: number | undefined
  /**
   * The number of records to skip.
   * @default 0
   */
  offset?: number | undefined
  /**
   * Only records whose `id` is exactly this.
   * @example "charge_adjustment_oakridge_0001"
   */
  id?: string | undefined
  /**
   * Only records whose `charge` is exactly this.
   * @example "charge_oakridge_0001"
   */
  charge?: string | undefined
  /**
   * Only records whose `created_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  created_at_since?: string | Date | undefined
  /**
   * Only records whose `updated_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  updated_at_since?: string | Date | undefined
}

export interface ChargeRefundsSearchRequest {
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
  /**
   * Maximum number of records to return. From 1 to 1000.
   * @default 100
   */
  limit?: number | undefined
  /**
   * The number of records to skip.
   * @default 0
   */
  offset?: number | undefined
  /**
   * Only records whose `id` is exactly this.
   * @example "charge_refund_oakridge_0001"
   */
  id?: string | undefined
  /**
   * Only records whose `charge` is exactly this.
   * @example "charge_oakridge_0001"
   */
  charge?: string | undefined
  /**
   * Only records whose `created_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  created_at_since?: string | Date | undefined
  /**
   * Only records whose `updated_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  updated_at_since?: string | Date | undefined
}

export interface PaymentPlansSearchRequest {
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
  /**
   * Maximum number of records to return. From 1 to 1000.
   * @default 100
   */
  limit?: number | undefined
  /**
   * The number of records to skip.
   * @default 0
   */
  offset?: number | undefined
  /**
   * Only records whose `id` is exactly this.
   * @example "payment_plan_oakridge_0001"
   */
  id?: string | undefined
  /**
   * Only records whose `subscription` is exactly this.
   * @example "subscription_oakridge_0001"
   */
  subscription?: string | undefined
  /**
   * Only records whose `pet` is exactly this.
   * @example "pet_oakridge_0001"
   */
  pet?: string | undefined
  /**
   * Only records whose `clinic` is exactly this.
   * @example "clinic_oakridge_01"
   */
  clinic?: string | undefined
  /**
   * Only records whose `status` is exactly this.
   * @example "active"
   */
  status?: string | undefined
  /**
   * Only records whose `created_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  created_at_since?: string | Date | undefined
  /**
   * Only records whose `updated_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  updated_at_since?: string | Date | undefined
}

export interface PaymentIntentsSearchRequest {
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
  /**
   * Maximum number of records to return. From 1 to 1000.
   * @default 100
   */
  limit?: number | undefined
  /**
   * The number of records to skip.
   * @default 0
   */
  offset?: number | undefined
  /**
   * Only records whose `id` is exactly this.
   * @example "payment_intent_oakridge_0001"
   */
  id?: string | undefined
  /**
   * Only records whose `subscription` is exactly this.
   * @example "subscription_oakridge_0001"
   */
  subscription_id?: string | undefined
  /**
   * Only records whose `pet` is exactly this.
   * @example "pet_oakridge_0001"
   */
  pet_id?: string | undefined
  /**
   * Only records whose `clinic_id` is exactly this.
   * @example "clinic_oakridge_01"
   */
  clinic?: string | undefined
  /**
   * Only records whose `updated_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  updated_at_since?: string | Date | undefined
  /**
   * Only records whose `created_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  created_at_since?: string | Date | undefined
}

export interface CancellationPaymentIntentsSearchRequest {
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
  /**
   * Maximum number of records to return. From 1 to 1000.
   * @default 100
   */
  limit?: number | undefined
  /**
   * The number of records to skip.
   * @default 0
   */
  offset?: number | undefined
  /**
   * Only records whose `id` is exactly this.
   * @example "cancellation_oakridge_0001"
   */
  id?: string | undefined
  /**
   * Only records whose `pet` is exactly this.
   * @example "pet_oakridge_0001"
   */
  pet?: string | undefined
  /**
   * Only records whose `subscription` is exactly this.
   * @example "subscription_oakridge_0001"
   */
  subscription?: string | undefined
  /**
   * Only records whose `clinic_id` is exactly this.
   * @example "clinic_oakridge_01"
   */
  clinic?: string | undefined
  /**
   * Only records whose `created_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  created_at_since?: string | Date | undefined
  /**
   * Only records whose `updated_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  updated_at_since?: string | Date | undefined
}

export interface PetsSearchRequest {
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
  /**
   * Maximum number of records to return. From 1 to 1000.
   * @default 100
   */
  limit?: number | undefined
  /**
   * The number of records to skip.
   * @default 0
   */
  offset?: number | undefined
  /**
   * Only records whose `id` is exactly this.
   * @example "pet_oakridge_0001"
   */
  id?: string | undefined
  /**
   * Only records whose `clinic` is exactly this.
   * @example "clinic_oakridge_01"
   */
  clinic?: string | undefined
  /**
   * Only records whose `client_id` is exactly this.
   * @example "client_oakridge_0001"
   */
  client_id?: string | undefined
  /**
   * Only records whose `species` is exactly this.
   * @example "Canine"
   */
  species?: string | undefined
  /**
   * Only records whose `created_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  created_at_since?: string | Date | undefined
  /**
   * Only records whose `updated_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  updated_at_since?: string | Date | undefined
}

export interface SubscriptionsSearchRequest {
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
  /**
   * Maximum number of records to return. From 1 to 1000.
   * @default 100
   */
  limit?: number | undefined
  /**
   * The number of records to skip.
   * @default 0
   */
  offset?: number | undefined
  /**
   * Only records whose `id` is exactly this.
   * @example "subscription_oakridge_0001"
   */
  id?: string | undefined
  /**
   * Only records whose `pet` is exactly this.
   * @example "pet_oakridge_0001"
   */
  pet?: string | undefined
  /**
   * Only records whose `clinic` is exactly this.
   * @example "clinic_oakridge_01"
   */
  clinic?: string | undefined
  /**
   * Only records whose `status` is exactly this.
   * @example "active"
   */
  status?: string | undefined
  /**
   * Only records whose `created_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  created_at_since?: string | Date | undefined
  /**
   * Only records whose `updated_at` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  updated_at_since?: string | Date | undefined
}

export interface PspPaymentsSearchRequest {
  /**
   * The clinic whose connected account to read.
   * @example "clinic_oakridge_01"
   */
  clinic: string
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
  /**
   * Maximum number of objects to return. Values over 100 are capped at 100.
   * @default 100
   */
  limit?: number | undefined
  /** The id of the last object of the previous page. */
  starting_after?: string | undefined
  /** Created at or after this Unix time, in seconds. */
  created_gte?: number | undefined
  /** Created at or before this Unix time, in seconds. */
  created_lte?: number | undefined
}

export interface PspChargesSearchRequest {
  /**
   * The clinic whose connected account to read.
   * @example "clinic_oakridge_01"
   */
  clinic: string
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
  /**
   * Maximum number of objects to return. Values over 100 are capped at 100.
   * @default 100
   */
  limit?: number | undefined
  /** The id of the last object of the previous page. */
  starting_after?: string | undefined
  /** Created at or after this Unix time, in seconds. */
  created_gte?: number | undefined
  /** Created at or before this Unix time, in seconds. */
  created_lte?: number | undefined
}

export interface PspRefundsSearchRequest {
  /**
   * The clinic whose connected account to read.
   * @example "clinic_oakridge_01"
   */
  clinic: string
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
  /**
   * Maximum number of objects to return. Values over 100 are capped at 100.
   * @default 100
   */
  limit?: number | undefined
  /** The id of the last object of the previous page. */
  starting_after?: string | undefined
  /** Created at or after this Unix time, in seconds. */
  created_gte?: number | undefined
  /** Created at or before this Unix time, in seconds. */
  created_lte?: number | undefined
}

export interface PspDisputesSearchRequest {
  /**
   * The clinic whose connected account to read.
   * @example "clinic_oakridge_01"
   */
  clinic: string
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
  /**
   * Maximum number of objects to return. Values over 100 are capped at 100.
   * @default 100
   */
  limit?: number | undefined
  /** The id of the last object of the previous page. */
  starting_after?: string | undefined
  /** Created at or after this Unix time, in seconds. */
  created_gte?: number | undefined
  /** Created at or before this Unix time, in seconds. */
  created_lte?: number | undefined
}

export interface PspPayoutsSearchRequest {
  /**
   * The clinic whose connected account to read.
   * @example "clinic_oakridge_01"
   */
  clinic: string
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
  /**
   * Maximum number of objects to return. Values over 100 are capped at 100.
   * @default 100
   */
  limit?: number | undefined
  /** The id of the last object of the previous page. */
  starting_after?: string | undefined
  /** Created at or after this Unix time, in seconds. */
  created_gte?: number | undefined
  /** Created at or before this Unix time, in seconds. */
  created_lte?: number | undefined
}

export interface PspBalanceTransactionsSearchRequest {
  /**
   * The clinic whose connected account to read.
   * @example "clinic_oakridge_01"
   */
  clinic: string
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
  /**
   * Maximum number of objects to return. Values over 100 are capped at 100.
   * @default 100
   */
  limit?: number | undefined
  /** The id of the last object of the previous page. */
  starting_after?: string | undefined
  /** Created at or after this Unix time, in seconds. */
  created_gte?: number | undefined
  /** Created at or before this Unix time, in seconds. */
  created_lte?: number | undefined
}

export interface InvoiceDeletionsSearchRequest {
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
  /**
   * Maximum number of records to return. From 1 to 1000.
   * @default 100
   */
  limit?: number | undefined
  /**
   * The number of records to skip.
   * @default 0
   */
  offset?: number | undefined
  /** Only records whose `state` is exactly this. */
  state?: string | undefined
  /**
   * Only records whose `scheduled_for` is at or after this. ISO 8601; UTC without an offset.
   * @example "2026-01-31T09:30:00Z"
   */
  scheduled_since?: string | Date | undefined
}

export interface InvoiceDeletionsGetRequest {
  /**
   * The id of the task. Either this or `idempotency_key` is required.
   * @example "81b8ad4e-04b1-5faa-8a32-d5097856a418"
   */
  task_id?: string | undefined
  /**
   * The Idempotency-Key of the delivery.
   * @example "demo-delivery-1"
   */
  idempotency_key?: string | undefined
  /**
   * The organization of the API key. Any other organization gets 400.
   * @example "org_oakridge"
   */
  organization?: string | undefined
}

export interface DeletedInvoice {
  /**
   * The invoice. All its lines are deleted with it.
   * @example "invoice_oakridge_0001"
   */
  invoice_id: string
  /**
   * Its home or servicing clinic. On a mismatch, the item is skipped.
   * @example "clinic_oakridge_01"
   */
  clinic_id?: string | null | undefined
  /**
   * Its client. On a mismatch, the item is skipped.
   * @example "client_oakridge_0001"
   */
  client_id?: string | null | undefined
}

export interface DeletedInvoiceLine {
  /**
   * The invoice line.
   * @example "line_oakridge_0002_1"
   */
  invoice_line_id: string
  /**
   * Its invoice. On a mismatch, the item is skipped.
   * @example "invoice_oakridge_0002"
   */
  invoice_id?: string | null | undefined
  /**
   * Its clinic. On a mismatch, the item is skipped.
   * @example "clinic_oakridge_01"
   */
  clinic_id?: string | null | undefined
}

/** The items to delete: invoices, lines, or both; from 1 to 10000 items together. */
export interface InvoiceDeletionsRequest {
  /** The invoices to delete, each with all its lines. */
  invoices?: Array<DeletedInvoice> | undefined
  /** The invoice lines to delete. */
  invoice_lines?: Array<DeletedInvoiceLine> | undefined
}

/** The receipt of a delivery. */
export interface DeliveryReceipt {
  /** Outcome of scheduling. `completed` is reserved. */
  status: "scheduled" | "duplicate" | "completed" | "error"
  /**
   * Derived from the organization and the Idempotency-Key.
   * @example "fedd6570-af5c-52fc-8fb8-9f96362f625f"
   */
  task_id: string
  /**
   * Time at which the deletion is due.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  scheduled_for: string
  /**
   * The Idempotency-Key of the request.
   * @example "delivery-1"
   */
  idempotency_key: string
  /**
   * The number of invoices in the delivery.
   * @example 1
   */
  invoices_count: number
  /**
   * The number of invoice lines in the delivery.
   * @example 1
   */
  invoice_lines_count: number
  /**
   * Time at which the delivery was received.
   * @format date-time
   * @example "2026-01-31T09:30:00.000Z"
   */
  received_at: string | null
}
