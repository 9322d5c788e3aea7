/** The records that the contract only names: their fields and filters as they were decided. */
import { changed, changedSince, decided, equals, fields, includes, named, type Resource } from "./Resource.ts"

export const organization: Resource = {
  name: "organization",
  record: "provisional",
  get: "provisional",
  orderedBy: "updated_at",
  fields: fields(["string!", "id"], ["string", "name"], changed),
  filters: {}
}

export const invoices: Resource = {
  ...decided,
  name: "invoices",
  fields: fields(
    ["string!", "id"],
    ["string", "home_clinic servicing_clinic client_id pet invoice_pims_id"],
    ["date-time", "invoice_date"],
    ["string", "status"],
    ["number", "subtotal discount tax total"],
    ["boolean!", "is_deleted"],
    ["date-time", "deleted_at"],
    changed
  ),
  filters: {
    id: equals("id"),
    clinic: equals("home_clinic", "servicing_clinic"),
    ...named("client_id pet invoice_pims_id status"),
    include_deleted: includes("is_deleted"),
    ...changedSince
  }
}

export const invoiceLines: Resource = {
  ...decided,
  name: "invoice-lines",
  fields: fields(
    ["string!", "id"],
    ["string", "invoice clinic pet invoice_line_pims_id product_code product_name"],
    ["number", "quantity unit_price discount total"],
    ["boolean!", "is_deleted"],
    ["date-time", "deleted_at"],
    changed
  ),
  filters: {
    ...named("id invoice clinic pet product_code"),
    include_deleted: includes("is_deleted"),
    ...changedSince
  }
}

export const pets: Resource = {
  ...decided,
  name: "pets",
  fields: fields(
    ["string!", "id"],
    ["string", "name species breed sex"],
    ["date", "date_of_birth"],
    ["string", "clinic client_id"],
    changed
  ),
  filters: { ...named("id clinic client_id species"), ...changedSince }
}

export const subscriptions: Resource = {
  ...decided,
  name: "subscriptions",
  fields: fields(
    ["string!", "id"],
    ["string", "pet clinic plan_name status"],
    ["date-time", "start_date end_date cancelled_at"],
    ["number", "price"],
    ["string", "billing_frequency"],
    ["boolean!", "auto_renew"],
    changed
  ),
  filters: { ...named("id pet clinic status"), ...changedSince }
}

export const paymentPlans: Resource = {
  ...decided,
  name: "payment-plans",
  fields: fields(
    ["string!", "id"],
    ["string", "subscription pet clinic status"],
    ["number", "payment_amount"],
    ["integer", "number_of_payments payments_made"],
    ["string", "frequency"],
    ["date-time", "next_payment_date"],
    changed
  ),
  filters: { ...named("id subscription pet clinic status"), ...changedSince }
}

export const chargeAdjustments: Resource = {
  ...decided,
  name: "charge-adjustments",
  fields: fields(["string!", "id"], ["string", "charge"], ["number", "amount"], ["string", "reason"], changed),
  filters: { ...named("id charge"), ...changedSince }
}
