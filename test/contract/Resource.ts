/** The records of the contract, typed by hand. Nothing here comes from the sources of the service. */

/**
 * The type of a field: string, number, integer, boolean, date-time, date, `strings` for an array of string, or `split` for the
 * object of a payment's split; with `!` if it is never null.
 */
export type FieldType = string

/** `contract`: shown by the contract. `provisional`: decided. */
export type Stability = "contract" | "provisional"

/** A filter of a search, and the fields that it looks at; none if they are stored and not shown. */
export interface Filter {
  readonly type: "string" | "boolean" | "date-time"
  readonly compares: "equals" | "numberEquals" | "since" | "before" | "includes"
  readonly fields: ReadonlyArray<string>
}

export interface Resource {
  readonly name: string
  readonly record: Stability
  readonly search?: Stability
  readonly get: Stability
  /** The timestamp that results ascend by, before their id. */
  readonly orderedBy: "updated_at" | "modified_at" | "created_at"
  readonly fields: Readonly<Record<string, FieldType>>
  readonly filters: Readonly<Record<string, Filter>>
}

const wordsOf = (text: string) => text.split(" ")

/** Fields in order, after the id: runs of names behind their type, such as `string: pet clinic; number: price`. */
const fieldsOf = (...runs: ReadonlyArray<string>): Readonly<Record<string, FieldType>> =>
  Object.fromEntries(
    ["string!: id", ...runs.flatMap((run) => run.split("; "))].flatMap((run) => {
      const [type = "", names = ""] = run.split(": ")
      return wordsOf(names).map((name) => [name, type])
    })
  )

const equals = (...fields: ReadonlyArray<string>): Filter => ({ type: "string", compares: "equals", fields })
const numberEquals = (field: string): Filter => ({ type: "string", compares: "numberEquals", fields: [field] })
const since = (field: string): Filter => ({ type: "date-time", compares: "since", fields: [field] })
const before = (field: string): Filter => ({ type: "date-time", compares: "before", fields: [field] })
const includes = (...fields: ReadonlyArray<string>): Filter => ({ type: "boolean", compares: "includes", fields })

/** Filters that equal the field of their name. */
const named = (names: string): Readonly<Record<string, Filter>> =>
  Object.fromEntries(wordsOf(names).map((name) => [name, equals(name)]))

/** The filters over the timestamps that nearly every record has. */
const changedSince = { created_at_since: since("created_at"), updated_at_since: since("updated_at") }

/** A resource whose record and search the contract shows. */
const shown = { record: "contract", search: "contract", get: "provisional", orderedBy: "updated_at" } as const

/** A resource that the contract only names. */
const decided = { ...shown, record: "provisional", search: "provisional" } as const

/** Every resource: those that the contract shows in its section 2, fields and filters in its order, then the decided ones. */
export const resources: ReadonlyArray<Resource> = [
  {
    ...shown,
    name: "payment-intents",
    fields: fieldsOf(
      "string: clinic_name clinic_id pet subscription wellnes_plan_name; number: payment_amount",
      "split!: payment_split; date-time: scheduled_date captured_date; boolean!: paid isRefunded IsTest",
      "date-time!: created_at updated_at; boolean!: isModifyCatchupPayment; strings: payment_modifications",
      "string: processor_payment_intent_id; integer: attempt_number",
      "number: original_amount_received refunded_amount"
    ),
    filters: {
      id: equals("id"),
      subscription_id: equals("subscription"),
      pet_id: equals("pet"),
      clinic: equals("clinic_id"),
      updated_at_since: since("updated_at"),
      created_at_since: since("created_at")
    }
  },
  {
    ...shown,
    name: "consumption-logs",
    fields: fieldsOf(
      "string: home_clinic servicing_clinic invoice_pims_id; date-time: invoice_date; string: invoice_line",
      "number: invoice_line_aje_delta_discounted invoice_line_aje_delta_gross",
      "string: invoice_line_pims_id pet pet_benefit product_code product_name",
      "number: qty_available_on_plan qty_consumed qty_in_plan qty_out_of_plan qty_remaining",
      "number: revenue_in_plan_total revenue_out_of_plan_total",
      "number: revenue_to_recognize_total revenue_to_recognize_per_unit; boolean!: is_unlimited_benefit",
      "string: subscription; date-time!: created_at updated_at; boolean!: is_deleted"
    ),
    filters: {
      ...named("id pet subscription home_clinic product_code invoice_line"),
      invoice_line_id: equals("invoice_line"),
      include_deleted: includes("is_deleted"),
      modified_since: since("updated_at"),
      ...changedSince
    }
  },
  {
    ...shown,
    name: "pet-benefits",
    get: "contract",
    fields: fieldsOf(
      "string: pet subscription benefit_name benefit_description wellness_plan_name; boolean!: is_addon",
      "number: revenue_to_recognize_per_unit retail_value provided remaining; boolean!: is_unlimited",
      "number: rounding_addition; boolean!: is_perk; number: in_kind_discount; string: parent_petbenefit",
      "date-time!: created_at updated_at; date-time: inactivation_date activation_date; strings!: product_ids"
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
  },
  {
    ...shown,
    name: "cancellation-payment-intents",
    fields: fieldsOf(
      "string: clinic_name clinic_id; date-time: date; boolean!: discounted",
      "number: discounted_amount new_price percent_discount; string: pet subscription wellnes_plan_name",
      "number: payments payment_amount; string: payment_or_refund paymentIntent_or_refund_id",
      "number: total_benefits_consumed_at_retail_price total_benefits_consumed_at_discounted_price; string: reason",
      "number: early_cancellation_fee; strings!: refund_ids; boolean!: isSucceeded IsTest",
      "date-time!: created_at updated_at"
    ),
    filters: { ...named("id pet subscription"), clinic: equals("clinic_id"), ...changedSince }
  },
  {
    ...shown,
    name: "charges",
    get: "contract",
    fields: fieldsOf(
      "string: home_clinic servicing_clinic invoice; number: invoice_pims_id; string: payment_method_id status",
      "number: original_amount current_amount net_paid paid_amount overpaid_amount",
      "number: outstanding_balance refunded_amount; date-time!: created_at updated_at"
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
  },
  {
    ...shown,
    name: "charge-payments",
    search: "provisional",
    get: "contract",
    fields: fieldsOf("string: currency status; number: amount; string: charge; date-time!: created_at updated_at"),
    filters: { ...named("id charge status"), ...changedSince }
  },
  {
    ...shown,
    name: "charge-refunds",
    fields: fieldsOf("date-time: refund_date; number: amount; string: charge; date-time!: created_at updated_at"),
    filters: { ...named("id charge"), ...changedSince }
  },
  {
    ...shown,
    name: "products",
    orderedBy: "modified_at",
    fields: fieldsOf(
      "string: clinic product_code pims_id product_name",
      "number: retail_price member_price member_cancellation_price; date-time!: created_at modified_at"
    ),
    filters: { ...named("id clinic product_code pims_id product_name"), modified_since: since("modified_at") }
  },
  {
    ...shown,
    name: "clinics",
    orderedBy: "created_at",
    fields: fieldsOf("string: clinic_pims_id name time_zone url organization"),
    filters: named("id clinic_pims_id name")
  },
  {
    name: "organization",
    record: "provisional",
    get: "provisional",
    orderedBy: "updated_at",
    fields: fieldsOf("string: name; date-time!: created_at updated_at"),
    filters: {}
  },
  {
    ...decided,
    name: "invoices",
    fields: fieldsOf(
      "string: home_clinic servicing_clinic client_id pet invoice_pims_id; date-time: invoice_date; string: status",
      "number: subtotal discount tax total; boolean!: is_deleted; date-time: deleted_at",
      "date-time!: created_at updated_at"
    ),
    filters: {
      id: equals("id"),
      clinic: equals("home_clinic", "servicing_clinic"),
      ...named("client_id pet invoice_pims_id status"),
      include_deleted: includes("is_deleted"),
      ...changedSince
    }
  },
  {
    ...decided,
    name: "invoice-lines",
    fields: fieldsOf(
      "string: invoice clinic pet invoice_line_pims_id product_code product_name",
      "number: quantity unit_price discount total; boolean!: is_deleted; date-time: deleted_at",
      "date-time!: created_at updated_at"
    ),
    filters: {
      ...named("id invoice clinic pet product_code"),
      include_deleted: includes("is_deleted"),
      ...changedSince
    }
  },
  {
    ...decided,
    name: "pets",
    fields: fieldsOf(
      "string: name species breed sex; date: date_of_birth; string: clinic client_id",
      "date-time!: created_at updated_at"
    ),
    filters: { ...named("id clinic client_id species"), ...changedSince }
  },
  {
    ...decided,
    name: "subscriptions",
    fields: fieldsOf(
      "string: pet clinic plan_name status; date-time: start_date end_date cancelled_at; number: price",
      "string: billing_frequency; boolean!: auto_renew; date-time!: created_at updated_at"
    ),
    filters: { ...named("id pet clinic status"), ...changedSince }
  },
  {
    ...decided,
    name: "payment-plans",
    fields: fieldsOf(
      "string: subscription pet clinic status; number: payment_amount; integer: number_of_payments payments_made",
      "string: frequency; date-time: next_payment_date; date-time!: created_at updated_at"
    ),
    filters: { ...named("id subscription pet clinic status"), ...changedSince }
  },
  {
    ...decided,
    name: "charge-adjustments",
    fields: fieldsOf("string: charge; number: amount; string: reason; date-time!: created_at updated_at"),
    filters: { ...named("id charge"), ...changedSince }
  }
]
