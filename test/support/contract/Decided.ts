/** The records that the contract only names: their fields and filters as they were decided. */
import { changed, changedSince, decided, equals, includes, type Resource } from "./Resource.ts"

export const organization: Resource = {
  name: "organization",
  record: "provisional",
  get: "provisional",
  orderedBy: "updated_at",
  fields: { id: "string!", name: "string", ...changed },
  filters: {}
}

export const invoices: Resource = {
  ...decided,
  name: "invoices",
  fields: {
    id: "string!",
    home_clinic: "string",
    servicing_clinic: "string",
    client_id: "string",
    pet: "string",
    invoice_pims_id: "string",
    invoice_date: "date-time",
    status: "string",
    subtotal: "number",
    discount: "number",
    tax: "number",
    total: "number",
    is_deleted: "boolean!",
    deleted_at: "date-time",
    ...changed
  },
  filters: {
    id: equals("id"),
    clinic: equals("home_clinic", "servicing_clinic"),
    client_id: equals("client_id"),
    pet: equals("pet"),
    invoice_pims_id: equals("invoice_pims_id"),
    status: equals("status"),
    include_deleted: includes("is_deleted"),
    ...changedSince
  }
}

export const invoiceLines: Resource = {
  ...decided,
  name: "invoice-lines",
  fields: {
    id: "string!",
    invoice: "string",
    clinic: "string",
    pet: "string",
    invoice_line_pims_id: "string",
    product_code: "string",
    product_name: "string",
    quantity: "number",
    unit_price: "number",
    discount: "number",
    total: "number",
    is_deleted: "boolean!",
    deleted_at: "date-time",
    ...changed
  },
  filters: {
    id: equals("id"),
    invoice: equals("invoice"),
    clinic: equals("clinic"),
    pet: equals("pet"),
    product_code: equals("product_code"),
    include_deleted: includes("is_deleted"),
    ...changedSince
  }
}

export const pets: Resource = {
  ...decided,
  name: "pets",
  fields: {
    id: "string!",
    name: "string",
    species: "string",
    breed: "string",
    sex: "string",
    date_of_birth: "date",
    clinic: "string",
    client_id: "string",
    ...changed
  },
  filters: {
    id: equals("id"),
    clinic: equals("clinic"),
    client_id: equals("client_id"),
    species: equals("species"),
    ...changedSince
  }
}

export const subscriptions: Resource = {
  ...decided,
  name: "subscriptions",
  fields: {
    id: "string!",
    pet: "string",
    clinic: "string",
    plan_name: "string",
    status: "string",
    start_date: "date-time",
    end_date: "date-time",
    cancelled_at: "date-time",
    price: "number",
    billing_frequency: "string",
    auto_renew: "boolean!",
    ...changed
  },
  filters: {
    id: equals("id"),
    pet: equals("pet"),
    clinic: equals("clinic"),
    status: equals("status"),
    ...changedSince
  }
}

export const paymentPlans: Resource = {
  ...decided,
  name: "payment-plans",
  fields: {
    id: "string!",
    subscription: "string",
    pet: "string",
    clinic: "string",
    status: "string",
    payment_amount: "number",
    number_of_payments: "integer",
    payments_made: "integer",
    frequency: "string",
    next_payment_date: "date-time",
    ...changed
  },
  filters: {
    id: equals("id"),
    subscription: equals("subscription"),
    pet: equals("pet"),
    clinic: equals("clinic"),
    status: equals("status"),
    ...changedSince
  }
}

export const chargeAdjustments: Resource = {
  ...decided,
  name: "charge-adjustments",
  fields: { id: "string!", charge: "string", amount: "number", reason: "string", ...changed },
  filters: { id: equals("id"), charge: equals("charge"), ...changedSince }
}
