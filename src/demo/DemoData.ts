/**
 * The demo data: two organizations with records of each resource, the same on every machine. Fields that are not given have
 * the examples of their schema.
 */
import { Array, DateTime } from "effect"
import { chargeAdjustments, chargePayments, chargeRefunds, charges } from "../api/records/Charges.ts"
import type { Fields } from "../api/records/Field.ts"
import { consumptionLogs, invoiceLines, invoices } from "../api/records/Invoices.ts"
import type { Records } from "../api/records/index.ts"
import { clinics, organization, products } from "../api/records/Organizations.ts"
import { cancellationPaymentIntents, paymentIntents, paymentPlans } from "../api/records/Payments.ts"
import { petBenefits, pets, subscriptions } from "../api/records/Pets.ts"
import type { Filters, Resource, Stored } from "../api/records/Resource.ts"
import { build } from "../records/Rows.ts"

/** The demo organizations, and the API key of each. Anyone may know these keys: they open nothing but demo data. */
export const organizations = [
  { slug: "oakridge", name: "Oakridge Veterinary Group", key: "pda_demo_oakridge", firstInvoice: 100_000 },
  { slug: "harbor", name: "Harbor Pet Partners", key: "pda_demo_harbor", firstInvoice: 200_000 }
] as const

export const demoKeys = organizations.map(({ key, slug }) => ({ organization: `org_${slug}`, key }))

const pad = (number: number, length = 4) => String(number).padStart(length, "0")

const pick = <A>(values: readonly [A, ...Array<A>], index: number): A => values[index % values.length] ?? values[0]

/** A number from 1 to `count` that starts again after it. */
const within = (count: number, number: number) => ((number - 1) % count) + 1

const start = Date.UTC(2026, 0, 5, 8, 0, 0)
const hour = 3_600_000
const at = (hours: number) => DateTime.makeUnsafe(start + hours * hour)

const cents = (amount: number) => Math.round(amount * 100) / 100

const catalog = Array.make(
  { product_code: "EXAM-01", product_name: "Wellness exam", price: 68 },
  { product_code: "VACC-RAB", product_name: "Rabies vaccine", price: 32.5 },
  { product_code: "DENT-CLN", product_name: "Dental cleaning", price: 310 },
  { product_code: "LAB-CBC", product_name: "Complete blood count", price: 84.25 },
  { product_code: "FLEA-06", product_name: "Flea prevention, 6 months", price: 97.8 }
)

const speciesOf = (number: number) => pick(["Canine", "Feline"], number)
const planOf = (number: number) => pick(["Gold", "Silver", "Puppy"], number)
const wellnessPlanOf = (number: number) => `${planOf(number)} ${speciesOf(number)} Wellness`
const priceOf = (number: number) => cents(24.5 + number * 1.25)

/** Each twentieth invoice is deleted, with its lines. */
const deletion = (number: number) => {
  const is_deleted = number % 20 === 0
  return { is_deleted, deleted_at: is_deleted ? at(number * 3 + 50) : null }
}

/** The records of one organization, by the name of their resource. */
export const recordsOf = ({ slug, name, firstInvoice }: (typeof organizations)[number]) => {
  const organization_id = `org_${slug}`
  const id = (prefix: string, number: number) => `${prefix}_${slug}_${pad(number)}`
  const clinic = (index: number) => `clinic_${slug}_${pad((index % 2) + 1, 2)}`
  const clinicName = (index: number) => `${name} ${pick(["North", "South"], index)}`
  const pet = (number: number) => id("pet", within(24, number))
  const subscription = (number: number) => id("subscription", within(24, number))
  const line = (number: number, part: number) => `line_${slug}_${pad(number)}_${part}`
  const clinicsOf = (number: number) => ({
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
  /** The records of a resource, numbered from 1. Each ten of them changed at once. */
  const records = <Name extends string, F extends Fields, Hidden extends Fields, S extends Filters>(
    resource: Resource<Name, F, Hidden, S>,
    prefix: string,
    count: number,
    make: (number: number) => Partial<Stored<Resource<Name, F, Hidden, S>>>
  ) => {
    const example = build(resource)
    return Array.makeBy(count, (index) => {
      const number = index + 1
      const changed = at(Math.ceil(number / 10) * 30 + 24)
      const times = { created_at: at(number * 3), updated_at: changed, modified_at: changed }
      const own = Object.fromEntries(Object.entries(times).filter(([field]) => field in example))
      return { ...example, organization_id, id: id(prefix, number), ...own, ...make(number) }
    })
  }
  return {
    organization: records(organization, "organization", 1, () => ({ id: organization_id, name })),
    clinics: records(clinics, "clinic", 2, (number) => ({
      id: clinic(number - 1),
      clinic_pims_id: `${slug.slice(0, 3).toUpperCase()}-${number}`,
      name: clinicName(number - 1),
      time_zone: pick(["America/Denver", "America/New_York"], number - 1),
      url: `https://${slug}-${number}.example`,
      organization: organization_id,
      processor_account: number === 1 ? `acct_demo_${slug}` : null
    })),
    pets: records(pets, "pet", 24, (number) => ({
      name: pick(["Biscuit", "Mochi", "Rex", "Luna", "Pepper", "Olive", "Ziggy", "Hazel"], number),
      species: speciesOf(number),
      breed: number % 9 === 0 ? null : pick(["Beagle", "Siamese", "Mixed", "Maine Coon"], number),
      sex: pick(["female", "male"], number),
      date_of_birth: number % 11 === 0 ? null : `20${15 + (number % 9)}-${pad((number % 12) + 1, 2)}-14`,
      clinic: clinic(number),
      client_id: id("client", Math.ceil(number / 2))
    })),
    subscriptions: records(subscriptions, "subscription", 24, (number) => ({
      pet: pet(number),
      clinic: clinic(number),
      plan_name: planOf(number),
      status: number % 8 === 0 ? "cancelled" : "active",
      start_date: at(number * 3),
      end_date: at(number * 3 + 8760),
      cancelled_at: number % 8 === 0 ? at(number * 3 + 2000) : null,
      price: priceOf(number),
      auto_renew: number % 8 !== 0
    })),
    "payment-plans": records(paymentPlans, "payment_plan", 24, (number) => ({
      subscription: subscription(number),
      pet: pet(number),
      clinic: clinic(number),
      status: number % 8 === 0 ? "stopped" : "active",
      payment_amount: priceOf(number),
      next_payment_date: number % 8 === 0 ? null : at(number * 3 + 720)
    })),
    "payment-intents": records(paymentIntents, "payment_intent", 120, (number) => ({
      ...intent(number, number),
      payment_amount: priceOf(number % 24),
      payment_split: { to_Platform: 2.5, to_Processor: 1.25, to_Clinic: cents(priceOf(number % 24) - 3.75) },
      scheduled_date: at(number * 3 + 24),
      captured_date: number % 6 === 0 ? null : at(number * 3 + 25),
      paid: number % 6 !== 0,
      isModifyCatchupPayment: number % 20 === 0,
      payment_modifications: number % 20 === 0 ? Array.make("plan upgraded") : null,
      processor_payment_intent_id: `pi_${slug}_${pad(number)}`,
      original_amount_received: number % 6 === 0 ? null : priceOf(number % 24)
    })),
    "cancellation-payment-intents": records(cancellationPaymentIntents, "cancellation", 6, (number) => ({
      ...intent(number, number * 8),
      date: at(number * 48),
      paymentIntent_or_refund_id: id("pi", number),
      refund_ids: [],
      isSucceeded: number !== 5
    })),
    "pet-benefits": records(petBenefits, "benefit", 72, (number) => ({
      pet: pet(number),
      subscription: subscription(number),
      benefit_name: pick(catalog, number).product_name,
      benefit_description: `${pick(catalog, number).product_name}, as often as the plan grants it`,
      wellness_plan_name: wellnessPlanOf(number),
      retail_value: pick(catalog, number).price,
      parent_petbenefit: null,
      inactivation_date: number % 18 === 0 ? at(number * 3 + 500) : null,
      activation_date: at(number * 3),
      product_ids: [id("product", (number % 10) + 1)],
      removed: number % 18 === 0
    })),
    products: records(products, "product", 10, (number) => {
      const { price, ...product } = pick(catalog, number)
      return {
        ...product,
        clinic: clinic(number),
        pims_id: `P-${1000 + number}`,
        retail_price: price,
        member_price: cents(price * 0.8),
        member_cancellation_price: cents(price * 0.9)
      }
    }),
    "consumption-logs": records(consumptionLogs, "consumption", 150, (number) => {
      const { price, ...product } = pick(catalog, number)
      const invoice = within(40, number)
      const part = (number % 3) + 1
      return {
        ...clinicsOf(number),
        ...product,
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
    invoices: records(invoices, "invoice", 40, (number) => ({
      ...clinicsOf(number),
      ...deletion(number),
      client_id: id("client", within(12, number)),
      pet: pet(number),
      invoice_pims_id: String(firstInvoice + number),
      invoice_date: at(number * 3),
      status: number % 5 === 0 ? "open" : "paid"
    })),
    "invoice-lines": records(invoiceLines, "line", 120, (index) => {
      const number = Math.ceil(index / 3)
      const part = within(3, index)
      const { price, ...product } = pick(catalog, index)
      return {
        ...product,
        ...deletion(number),
        id: line(number, part),
        invoice: id("invoice", number),
        clinic: clinic(number),
        pet: pet(number),
        invoice_line_pims_id: `${firstInvoice + number}-${part}`,
        unit_price: price,
        discount: cents(price * 0.1),
        total: cents(price * 0.9)
      }
    }),
    charges: records(charges, "charge", 150, (number) => ({
      ...clinicsOf(number),
      invoice: id("invoice", within(40, number)),
      invoice_pims_id: firstInvoice + within(40, number),
      payment_method_id: id("pm", within(12, number)),
      status: pick(["paid", "open", "paid", "refunded"], number),
      ...(number % 4 === 1 && { net_paid: 0, paid_amount: 0, outstanding_balance: 110 }),
      refunded_amount: number % 4 === 3 ? 20 : 0,
      pet: pet(number)
    })),
    "charge-payments": records(chargePayments, "charge_payment", 112, (number) => ({
      status: number % 14 === 0 ? "failed" : "succeeded",
      charge: id("charge", number)
    })),
    "charge-adjustments": records(chargeAdjustments, "charge_adjustment", 30, (number) => ({
      charge: id("charge", number * 5),
      reason: pick(["Courtesy", "Wrong product", "Plan discount"], number)
    })),
    "charge-refunds": records(chargeRefunds, "charge_refund", 37, (number) => ({
      refund_date: at(number * 12 + 5),
      charge: id("charge", number * 4 - 1)
    }))
  } satisfies Partial<Records>
}
