/**
 * The demo data: two organizations with records of each resource, the same on every machine. Values that do not differ are
 * the examples of their fields.
 */
import { Array, DateTime } from "effect"
import { cancellationPaymentIntents } from "../api/records/CancellationPaymentIntents.ts"
import { chargeAdjustments } from "../api/records/ChargeAdjustments.ts"
import { chargePayments } from "../api/records/ChargePayments.ts"
import { chargeRefunds } from "../api/records/ChargeRefunds.ts"
import { charges } from "../api/records/Charges.ts"
import { consumptionLogs } from "../api/records/ConsumptionLogs.ts"
import type { Records } from "../api/records/index.ts"
import { invoiceLines } from "../api/records/InvoiceLines.ts"
import { invoices } from "../api/records/Invoices.ts"
import { paymentIntents } from "../api/records/PaymentIntents.ts"
import { paymentPlans } from "../api/records/PaymentPlans.ts"
import { petBenefits } from "../api/records/PetBenefits.ts"
import { pets } from "../api/records/Pets.ts"
import { subscriptions } from "../api/records/Subscriptions.ts"
import { build } from "../records/Rows.ts"

/** The demo organizations, and the API key of each. Anyone may know these keys: they open nothing but demo data. */
export const organizations = [
  { slug: "oakridge", name: "Oakridge Veterinary Group", key: "pda_demo_oakridge", firstInvoice: 100_000 },
  { slug: "harbor", name: "Harbor Pet Partners", key: "pda_demo_harbor", firstInvoice: 200_000 }
] as const

export const demoKeys = organizations.map(({ key, slug }) => ({ organization: `org_${slug}`, key }))

type Organization = (typeof organizations)[number]

const pad = (number: number, length = 4) => String(number).padStart(length, "0")

const pick = <A>(values: readonly [A, ...Array<A>], index: number): A => values[index % values.length] ?? values[0]

/** A number from 1 to `count` that starts again after it. */
const within = (count: number, number: number) => ((number - 1) % count) + 1

const start = Date.UTC(2026, 0, 5, 8, 0, 0)
const hour = 3_600_000
const at = (hours: number) => DateTime.makeUnsafe(start + hours * hour)

/** The times of the record of this number; the records of each ten change at once. */
const times = (number: number) => ({
  created_at: at(number * 3),
  updated_at: at(Math.ceil(number / 10) * 30 + 24)
})

const many = <A>(count: number, make: (number: number) => A) => Array.makeBy(count, (index) => make(index + 1))

const cents = (amount: number) => Math.round(amount * 100) / 100

const products = Array.make(
  { code: "EXAM-01", name: "Wellness exam", price: 68 },
  { code: "VACC-RAB", name: "Rabies vaccine", price: 32.5 },
  { code: "DENT-CLN", name: "Dental cleaning", price: 310 },
  { code: "LAB-CBC", name: "Complete blood count", price: 84.25 },
  { code: "FLEA-06", name: "Flea prevention, 6 months", price: 97.8 }
)

const speciesOf = (number: number) => pick(["Canine", "Feline"], number)
const planOf = (number: number) => pick(["Gold", "Silver", "Puppy"], number)
const wellnessPlanOf = (number: number) => `${planOf(number)} ${speciesOf(number)} Wellness`

/** Each twentieth invoice is deleted, with its lines. */
const deletion = (number: number) => ({
  is_deleted: number % 20 === 0,
  deleted_at: number % 20 === 0 ? at(number * 3 + 50) : null
})

/** The records of one organization, by the name of their resource. */
export const recordsOf = ({ slug, name, firstInvoice }: Organization) => {
  const organization_id = `org_${slug}`
  const id = (prefix: string, number: number) => `${prefix}_${slug}_${pad(number)}`
  const clinic = (index: number) => `clinic_${slug}_${pad((index % 2) + 1, 2)}`
  const clinicName = (index: number) => `${name} ${pick(["North", "South"], index)}`
  const pet = (number: number) => id("pet", within(24, number))
  const subscription = (number: number) => id("subscription", within(24, number))
  const line = (number: number, part: number) => `line_${slug}_${pad(number)}_${part}`
  /** Records that have the values of an example, other than those that are made. */
  const records = <A extends object>(example: A, prefix: string, count: number, make: (number: number) => Partial<A>) =>
    many(count, (number) => ({
      ...example,
      organization_id,
      id: id(prefix, number),
      ...times(number),
      ...make(number)
    }))
  const clinics = (number: number) => ({
    home_clinic: clinic(number),
    servicing_clinic: clinic(Math.floor(number / 7))
  })
  const intent = (number: number, subscriptionNumber: number) => ({
    clinic_name: clinicName(number),
    clinic_id: clinic(number),
    pet: pet(subscriptionNumber),
    subscription: subscription(subscriptionNumber),
    plan_name: planOf(number),
    species: speciesOf(number),
    wellnes_plan_name: wellnessPlanOf(number)
  })
  return {
    organization: [{ organization_id, id: organization_id, name, created_at: at(0), updated_at: at(24) }],
    clinics: many(2, (number) => ({
      organization_id,
      id: clinic(number - 1),
      clinic_pims_id: `${slug.slice(0, 3).toUpperCase()}-${number}`,
      name: clinicName(number - 1),
      time_zone: pick(["America/Denver", "America/New_York"], number - 1),
      url: `https://${slug}-${number}.example`,
      organization: organization_id,
      created_at: at(number),
      processor_account: number === 1 ? `acct_demo_${slug}` : null
    })),
    pets: records(build(pets), "pet", 24, (number) => ({
      name: pick(["Biscuit", "Mochi", "Rex", "Luna", "Pepper", "Olive", "Ziggy", "Hazel"], number),
      species: speciesOf(number),
      breed: number % 9 === 0 ? null : pick(["Beagle", "Siamese", "Mixed", "Maine Coon"], number),
      sex: pick(["female", "male"], number),
      date_of_birth: `20${pad(15 + (number % 9), 2)}-${pad((number % 12) + 1, 2)}-${pad((number % 28) + 1, 2)}`,
      clinic: clinic(number),
      client_id: id("client", Math.ceil(number / 2))
    })),
    subscriptions: records(build(subscriptions), "subscription", 24, (number) => ({
      pet: pet(number),
      clinic: clinic(number),
      plan_name: planOf(number),
      status: number % 8 === 0 ? "cancelled" : "active",
      start_date: at(number * 3),
      end_date: at(number * 3 + 8760),
      cancelled_at: number % 8 === 0 ? at(number * 3 + 2000) : null,
      auto_renew: number % 8 !== 0
    })),
    "payment-plans": records(build(paymentPlans), "payment_plan", 24, (number) => ({
      subscription: subscription(number),
      pet: pet(number),
      clinic: clinic(number),
      status: number % 8 === 0 ? "stopped" : "active",
      payments_made: number % 12,
      next_payment_date: number % 8 === 0 ? null : at(number * 3 + 720)
    })),
    "payment-intents": records(build(paymentIntents), "payment_intent", 120, (number) => ({
      ...intent(number, number),
      scheduled_date: at(number * 3 + 24),
      captured_date: number % 6 === 0 ? null : at(number * 3 + 25),
      paid: number % 6 !== 0,
      isRefunded: number % 15 === 0,
      payment_modifications: number % 20 === 0 ? Array.make("plan upgraded") : null,
      processor_payment_intent_id: `pi_${slug}_${pad(number)}`,
      original_amount_received: number % 6 === 0 ? null : 42.5,
      refunded_amount: number % 15 === 0 ? 10 : 0
    })),
    "cancellation-payment-intents": records(build(cancellationPaymentIntents), "cancellation", 6, (number) => {
      const refund = number % 3 === 0
      return {
        ...intent(number, number * 8),
        date: at(number * 48),
        discounted: true,
        payment_or_refund: refund ? "refund" : "payment",
        paymentIntent_or_refund_id: id(refund ? "re" : "pi", number),
        reason: pick(["Moved away", "Pet passed away", "Cost"], number),
        refund_ids: refund ? [id("re", number)] : [],
        isSucceeded: number !== 5
      }
    }),
    "pet-benefits": records(build(petBenefits), "benefit", 72, (number) => {
      const { name: benefit_name, price } = pick(products, number)
      return {
        pet: pet(number),
        subscription: subscription(number),
        benefit_name,
        benefit_description: `${benefit_name}, as often as the plan grants it`,
        wellness_plan_name: wellnessPlanOf(number),
        revenue_to_recognize_per_unit: cents(price * 0.8),
        retail_value: price,
        parent_petbenefit: null,
        inactivation_date: number % 18 === 0 ? at(number * 3 + 500) : null,
        activation_date: at(number * 3),
        product_ids: [id("product", (number % 10) + 1)],
        removed: number % 18 === 0
      }
    }),
    products: many(10, (number) => ({
      organization_id,
      id: id("product", number),
      clinic: clinic(number),
      product_code: pick(products, number).code,
      pims_id: `P-${1000 + number}`,
      product_name: pick(products, number).name,
      retail_price: pick(products, number).price,
      member_price: cents(pick(products, number).price * 0.8),
      member_cancellation_price: cents(pick(products, number).price * 0.9),
      created_at: times(number).created_at,
      modified_at: times(number).updated_at
    })),
    "consumption-logs": records(build(consumptionLogs), "consumption", 150, (number) => {
      const { code: product_code, name: product_name, price } = pick(products, number)
      const invoice = within(40, number)
      const part = (number % 3) + 1
      return {
        ...clinics(number),
        product_code,
        product_name,
        invoice_pims_id: String(firstInvoice + invoice),
        invoice_date: at(number * 3),
        invoice_line: line(invoice, part),
        invoice_line_pims_id: `${firstInvoice + invoice}-${part}`,
        pet: pet(number),
        pet_benefit: id("benefit", within(72, number)),
        revenue_in_plan_total: price,
        revenue_to_recognize_total: cents(price * 0.8),
        revenue_to_recognize_per_unit: cents(price * 0.8),
        subscription: subscription(number),
        is_deleted: number % 25 === 0
      }
    }),
    invoices: records(build(invoices), "invoice", 40, (number) => ({
      ...clinics(number),
      ...deletion(number),
      client_id: id("client", within(12, number)),
      pet: pet(number),
      invoice_pims_id: String(firstInvoice + number),
      invoice_date: at(number * 3),
      status: number % 5 === 0 ? "open" : "paid"
    })),
    "invoice-lines": records(build(invoiceLines), "line", 120, (index) => {
      const number = Math.ceil(index / 3)
      const part = within(3, index)
      const product = pick(products, index)
      return {
        id: line(number, part),
        ...deletion(number),
        product_code: product.code,
        product_name: product.name,
        invoice: id("invoice", number),
        clinic: clinic(number),
        pet: pet(number),
        invoice_line_pims_id: `${firstInvoice + number}-${part}`,
        unit_price: product.price,
        discount: cents(product.price * 0.1),
        total: cents(product.price * 0.9)
      }
    }),
    charges: records(build(charges), "charge", 150, (number) => ({
      ...clinics(number),
      invoice: id("invoice", within(40, number)),
      invoice_pims_id: firstInvoice + within(40, number),
      payment_method_id: id("pm", within(12, number)),
      status: pick(["paid", "open", "paid", "refunded"], number),
      ...(number % 4 === 1 && { net_paid: 0, paid_amount: 0, outstanding_balance: 110 }),
      ...(number % 4 === 3 && { net_paid: 90, refunded_amount: 20 }),
      pet: pet(number)
    })),
    "charge-payments": records(build(chargePayments), "charge_payment", 112, (number) => ({
      status: number % 14 === 0 ? "failed" : "succeeded",
      charge: id("charge", number)
    })),
    "charge-adjustments": records(build(chargeAdjustments), "charge_adjustment", 30, (number) => ({
      charge: id("charge", number * 5),
      reason: pick(["Courtesy", "Wrong product", "Plan discount"], number)
    })),
    "charge-refunds": records(build(chargeRefunds), "charge_refund", 37, (number) => ({
      refund_date: at(number * 12 + 5),
      charge: id("charge", number * 4 - 1)
    }))
  } satisfies Partial<Records>
}
