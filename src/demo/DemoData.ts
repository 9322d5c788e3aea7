/** The demo data: two organizations with records of each resource, the same on every machine. */
import { Array, DateTime } from "effect"
import type { Records } from "../api/records/index.ts"

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

/** The times of the record of this number; the records of each ten change at once. */
const times = (number: number) => ({ created_at: at(number * 3), updated_at: at(Math.ceil(number / 10) * 30 + 24) })

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

const priceOf = (number: number) => cents(24.5 + number * 1.25)

/** Each twentieth invoice is deleted, with its lines. */
const deletion = (number: number) => ({
  is_deleted: number % 20 === 0,
  deleted_at: number % 20 === 0 ? at(number * 3 + 50) : null
})

/** The records of one organization, by the name of their resource. */
export const recordsOf = ({ slug, name, firstInvoice }: (typeof organizations)[number]) => {
  const organization_id = `org_${slug}`
  const id = (prefix: string, number: number) => `${prefix}_${slug}_${pad(number)}`
  const clinic = (index: number) => `clinic_${slug}_${pad((index % 2) + 1, 2)}`
  const clinicName = (index: number) => `${name} ${pick(["North", "South"], index)}`
  const pet = (number: number) => id("pet", within(24, number))
  const subscription = (number: number) => id("subscription", within(24, number))
  const line = (number: number, part: number) => `line_${slug}_${pad(number)}_${part}`
  const records = <A extends object>(prefix: string, count: number, make: (number: number) => A) =>
    many(count, (number) => ({ organization_id, id: id(prefix, number), ...times(number), ...make(number) }))
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
    plan_header: "Wellness",
    wellnes_plan_name: wellnessPlanOf(number),
    IsTest: false
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
    pets: records("pet", 24, (number) => ({
      name: pick(["Biscuit", "Mochi", "Rex", "Luna", "Pepper", "Olive", "Ziggy", "Hazel"], number),
      species: speciesOf(number),
      breed: number % 9 === 0 ? null : pick(["Beagle", "Siamese", "Mixed", "Maine Coon"], number),
      sex: pick(["female", "male"], number),
      date_of_birth:
        number % 11 === 0
          ? null
          : `20${pad(15 + (number % 9), 2)}-${pad((number % 12) + 1, 2)}-${pad((number % 28) + 1, 2)}`,
      clinic: clinic(number),
      client_id: id("client", Math.ceil(number / 2))
    })),
    subscriptions: records("subscription", 24, (number) => ({
      pet: pet(number),
      clinic: clinic(number),
      plan_name: planOf(number),
      status: number % 8 === 0 ? "cancelled" : "active",
      start_date: at(number * 3),
      end_date: at(number * 3 + 8760),
      cancelled_at: number % 8 === 0 ? at(number * 3 + 2000) : null,
      price: priceOf(number),
      billing_frequency: "monthly",
      auto_renew: number % 8 !== 0
    })),
    "payment-plans": records("payment_plan", 24, (number) => ({
      subscription: subscription(number),
      pet: pet(number),
      clinic: clinic(number),
      status: number % 8 === 0 ? "stopped" : "active",
      payment_amount: priceOf(number),
      number_of_payments: 12,
      payments_made: number % 12,
      frequency: "monthly",
      next_payment_date: number % 8 === 0 ? null : at(number * 3 + 720)
    })),
    "payment-intents": records("payment_intent", 120, (number) => ({
      ...intent(number, number),
      payment_amount: priceOf(number % 24),
      payment_split: { to_Platform: 2.5, to_Processor: 1.25, to_Clinic: cents(priceOf(number % 24) - 3.75) },
      scheduled_date: at(number * 3 + 24),
      captured_date: number % 6 === 0 ? null : at(number * 3 + 25),
      paid: number % 6 !== 0,
      isRefunded: number % 15 === 0,
      isModifyCatchupPayment: number % 20 === 0,
      payment_modifications: number % 20 === 0 ? Array.make("plan upgraded") : null,
      processor_payment_intent_id: `pi_${slug}_${pad(number)}`,
      attempt_number: (number % 3) + 1,
      original_amount_received: number % 6 === 0 ? null : priceOf(number % 24),
      refunded_amount: number % 15 === 0 ? 10 : 0
    })),
    "cancellation-payment-intents": records("cancellation", 6, (number) => {
      const refund = number % 3 === 0
      const discount = number % 2 === 0 ? 10 : 0
      return {
        ...intent(number, number * 8),
        date: at(number * 48),
        discounted: discount > 0,
        discounted_amount: discount,
        new_price: 90,
        percent_discount: discount,
        payments: 127.5,
        payment_amount: 90,
        payment_or_refund: refund ? "refund" : "payment",
        paymentIntent_or_refund_id: id(refund ? "re" : "pi", number),
        total_benefits_consumed_at_retail_price: 230.25,
        total_benefits_consumed_at_discounted_price: 207.25,
        reason: pick(["Moved away", "Pet passed away", "Cost"], number),
        early_cancellation_fee: 25,
        refund_ids: refund ? [id("re", number)] : [],
        isSucceeded: number !== 5
      }
    }),
    "pet-benefits": records("benefit", 72, (number) => {
      const { name: benefit_name, price } = pick(products, number)
      return {
        pet: pet(number),
        subscription: subscription(number),
        benefit_name,
        benefit_description: `${benefit_name}, as often as the plan grants it`,
        wellness_plan_name: wellnessPlanOf(number),
        is_addon: number % 10 === 0,
        revenue_to_recognize_per_unit: cents(price * 0.8),
        retail_value: price,
        provided: (number % 3) + 1,
        remaining: number % 3,
        is_unlimited: number % 12 === 0,
        rounding_addition: number % 7 === 0 ? 0.01 : 0,
        is_perk: number % 9 === 0,
        in_kind_discount: 0,
        parent_petbenefit: number % 10 === 0 ? id("benefit", number - 1) : null,
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
    "consumption-logs": records("consumption", 150, (number) => {
      const product = pick(products, number)
      const invoice = within(40, number)
      const part = (number % 3) + 1
      return {
        ...clinics(number),
        product_code: product.code,
        product_name: product.name,
        invoice_pims_id: String(firstInvoice + invoice),
        invoice_date: at(number * 3),
        invoice_line: line(invoice, part),
        invoice_line_aje_delta_discounted: cents(-0.25 * (number % 9)),
        invoice_line_aje_delta_gross: cents(-0.3 * (number % 9)),
        invoice_line_pims_id: `${firstInvoice + invoice}-${part}`,
        pet: pet(number),
        pet_benefit: id("benefit", within(72, number)),
        qty_available_on_plan: part,
        qty_consumed: 1,
        qty_in_plan: 1,
        qty_out_of_plan: 0,
        qty_remaining: number % 3,
        revenue_in_plan_total: product.price,
        revenue_out_of_plan_total: 0,
        revenue_to_recognize_total: cents(product.price * 0.8),
        revenue_to_recognize_per_unit: cents(product.price * 0.8),
        is_unlimited_benefit: number % 12 === 0,
        subscription: subscription(number),
        is_deleted: number % 25 === 0
      }
    }),
    invoices: records("invoice", 40, (number) => ({
      ...clinics(number),
      ...deletion(number),
      client_id: id("client", within(12, number)),
      pet: pet(number),
      invoice_pims_id: String(firstInvoice + number),
      invoice_date: at(number * 3),
      status: number % 5 === 0 ? "open" : "paid",
      subtotal: 180.5,
      discount: 18.05,
      tax: 9.6,
      total: 172.05
    })),
    "invoice-lines": records("line", 120, (index) => {
      const number = Math.ceil(index / 3)
      const part = within(3, index)
      const product = pick(products, index)
      return {
        id: line(number, part),
        ...times(number),
        ...deletion(number),
        product_code: product.code,
        product_name: product.name,
        invoice: id("invoice", number),
        clinic: clinic(number),
        pet: pet(number),
        invoice_line_pims_id: `${firstInvoice + number}-${part}`,
        quantity: 1,
        unit_price: product.price,
        discount: cents(product.price * 0.1),
        total: cents(product.price * 0.9)
      }
    }),
    charges: records("charge", 150, (number) => ({
      ...clinics(number),
      invoice: id("invoice", within(40, number)),
      invoice_pims_id: firstInvoice + within(40, number),
      payment_method_id: id("pm", within(12, number)),
      status: pick(["paid", "open", "paid", "refunded"], number),
      original_amount: 172.05,
      current_amount: 162.05,
      net_paid: number % 4 === 1 ? 0 : 162.05,
      paid_amount: number % 4 === 1 ? 0 : 162.05,
      overpaid_amount: 0,
      outstanding_balance: number % 4 === 1 ? 162.05 : 0,
      refunded_amount: number % 4 === 3 ? 20 : 0,
      pet: pet(number)
    })),
    "charge-payments": records("charge_payment", 112, (number) => ({
      currency: "usd",
      status: number % 14 === 0 ? "failed" : "succeeded",
      amount: 162.05,
      charge: id("charge", number)
    })),
    "charge-adjustments": records("charge_adjustment", 30, (number) => ({
      charge: id("charge", number * 5),
      amount: -10,
      reason: pick(["Courtesy", "Wrong product", "Plan discount"], number)
    })),
    "charge-refunds": records("charge_refund", 37, (number) => ({
      refund_date: at(number * 12 + 5),
      amount: 20,
      charge: id("charge", number * 4 - 1)
    }))
  } satisfies Partial<Records>
}
