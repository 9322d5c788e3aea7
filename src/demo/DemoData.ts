/** The demo data: two organizations with records of each resource, the same on every machine. */
import { Array, DateTime } from "effect"
import type { Records } from "../api/records/index.ts"

/** The demo organizations, and the API key of each. Anyone may know these keys: they open nothing but demo data. */
export const organizations = [
  { slug: "oakridge", name: "Oakridge Veterinary Group", key: "pda_demo_oakridge", firstInvoice: 100_000 },
  { slug: "harbor", name: "Harbor Pet Partners", key: "pda_demo_harbor", firstInvoice: 200_000 }
] as const

/** Those keys, each with the id of its organization. */
export const demoKeys = organizations.map(({ key, slug }) => ({ organization: `org_${slug}`, key }))

type Organization = (typeof organizations)[number]

const pad = (number: number, length = 4) => String(number).padStart(length, "0")

const pick = <A>(values: readonly [A, ...Array<A>], index: number): A => values[index % values.length] ?? values[0]

const start = Date.UTC(2026, 0, 5, 8, 0, 0)
const hour = 3_600_000
const at = (hours: number) => DateTime.makeUnsafe(start + hours * hour)

/** When the record of this number was made and last changed; the records of each ten are changed at once. */
const times = (number: number) => ({
  created_at: at(number * 3),
  updated_at: at(Math.ceil(number / 10) * 30 + 24)
})

const many = <A>(count: number, make: (number: number) => A) => Array.makeBy(count, (index) => make(index + 1))

const cents = (amount: number) => Math.round(amount * 100) / 100

const species = ["Canine", "Feline"] as const
const plans = ["Gold", "Silver", "Puppy"] as const
const petNames = ["Biscuit", "Mochi", "Rex", "Luna", "Pepper", "Olive", "Ziggy", "Hazel"] as const
const breeds = ["Beagle", "Siamese", "Mixed", "Maine Coon"] as const
const products = Array.make(
  { code: "EXAM-01", name: "Wellness exam", price: 68 },
  { code: "VACC-RAB", name: "Rabies vaccine", price: 32.5 },
  { code: "DENT-CLN", name: "Dental cleaning", price: 310 },
  { code: "LAB-CBC", name: "Complete blood count", price: 84.25 },
  { code: "FLEA-06", name: "Flea prevention, 6 months", price: 97.8 }
)

/** The records of one organization, by the name of their resource. */
export const recordsOf = ({ slug, name, firstInvoice }: Organization) => {
  const organization_id = `org_${slug}`
  const id = (prefix: string, number: number) => `${prefix}_${slug}_${pad(number)}`
  const clinic = (index: number) => `clinic_${slug}_${pad((index % 2) + 1, 2)}`
  const clinicName = (index: number) => `${name} ${pick(["North", "South"], index)}`
  const pet = (number: number) => id("pet", ((number - 1) % 24) + 1)
  const subscription = (number: number) => id("subscription", ((number - 1) % 24) + 1)
  const benefit = (number: number) => id("benefit", ((number - 1) % 72) + 1)
  const planOf = (number: number) => ({
    plan_name: pick(plans, number),
    species: pick(species, number),
    plan_header: "Wellness"
  })
  const wellnes_plan_name = (number: number) => `${pick(plans, number)} ${pick(species, number)} Wellness`
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
    pets: many(24, (number) => ({
      organization_id,
      id: pet(number),
      name: pick(petNames, number),
      species: pick(species, number),
      breed: number % 9 === 0 ? null : pick(breeds, number),
      sex: pick(["female", "male"], number),
      date_of_birth:
        number % 11 === 0
          ? null
          : `20${pad(15 + (number % 9), 2)}-${pad((number % 12) + 1, 2)}-${pad((number % 28) + 1, 2)}`,
      clinic: clinic(number),
      client_id: id("client", Math.ceil(number / 2)),
      ...times(number)
    })),
    subscriptions: many(24, (number) => ({
      organization_id,
      id: subscription(number),
      pet: pet(number),
      clinic: clinic(number),
      plan_name: pick(plans, number),
      status: number % 8 === 0 ? "cancelled" : "active",
      start_date: at(number * 3),
      end_date: at(number * 3 + 8760),
      cancelled_at: number % 8 === 0 ? at(number * 3 + 2000) : null,
      price: cents(24.5 + number * 1.25),
      billing_frequency: "monthly",
      auto_renew: number % 8 !== 0,
      ...times(number)
    })),
    "payment-plans": many(24, (number) => ({
      organization_id,
      id: id("payment_plan", number),
      subscription: subscription(number),
      pet: pet(number),
      clinic: clinic(number),
      status: number % 8 === 0 ? "stopped" : "active",
      payment_amount: cents(24.5 + number * 1.25),
      number_of_payments: 12,
      payments_made: number % 12,
      frequency: "monthly",
      next_payment_date: number % 8 === 0 ? null : at(number * 3 + 720),
      ...times(number)
    })),
    "payment-intents": many(120, (number) => ({
      organization_id,
      id: id("payment_intent", number),
      clinic_name: clinicName(number),
      clinic_id: clinic(number),
      pet: pet(number),
      subscription: subscription(number),
      ...planOf(number),
      wellnes_plan_name: wellnes_plan_name(number),
      payment_amount: cents(24.5 + (number % 24) * 1.25),
      payment_split: { to_Platform: 2.5, to_Processor: 1.25, to_Clinic: cents(20.75 + (number % 24) * 1.25) },
      scheduled_date: at(number * 3 + 24),
      captured_date: number % 6 === 0 ? null : at(number * 3 + 25),
      paid: number % 6 !== 0,
      isRefunded: number % 15 === 0,
      IsTest: false,
      isModifyCatchupPayment: number % 20 === 0,
      payment_modifications: number % 20 === 0 ? Array.make("plan upgraded") : null,
      processor_payment_intent_id: `pi_${slug}_${pad(number)}`,
      attempt_number: (number % 3) + 1,
      original_amount_received: number % 6 === 0 ? null : cents(24.5 + (number % 24) * 1.25),
      refunded_amount: number % 15 === 0 ? 10 : 0,
      ...times(number)
    })),
    "cancellation-payment-intents": many(6, (number) => ({
      organization_id,
      id: id("cancellation", number),
      clinic_name: clinicName(number),
      clinic_id: clinic(number),
      date: at(number * 48),
      discounted: number % 2 === 0,
      discounted_amount: number % 2 === 0 ? 10 : 0,
      new_price: 90,
      percent_discount: number % 2 === 0 ? 10 : 0,
      pet: pet(number * 8),
      subscription: subscription(number * 8),
      ...planOf(number),
      wellnes_plan_name: wellnes_plan_name(number),
      payments: 127.5,
      payment_amount: 90,
      payment_or_refund: number % 3 === 0 ? "refund" : "payment",
      paymentIntent_or_refund_id: `${number % 3 === 0 ? "re" : "pi"}_${slug}_${pad(number)}`,
      total_benefits_consumed_at_retail_price: 230.25,
      total_benefits_consumed_at_discounted_price: 207.25,
      reason: pick(["Moved away", "Pet passed away", "Cost"], number),
      early_cancellation_fee: 25,
      refund_ids: number % 3 === 0 ? [`re_${slug}_${pad(number)}`] : [],
      isSucceeded: number !== 5,
      IsTest: false,
      ...times(number)
    })),
    "pet-benefits": many(72, (number) => ({
      organization_id,
      id: benefit(number),
      pet: pet(number),
      subscription: subscription(number),
      benefit_name: pick(products, number).name,
      benefit_description: `${pick(products, number).name}, as often as the plan grants it`,
      wellness_plan_name: wellnes_plan_name(number),
      is_addon: number % 10 === 0,
      revenue_to_recognize_per_unit: cents(pick(products, number).price * 0.8),
      retail_value: pick(products, number).price,
      provided: (number % 3) + 1,
      remaining: number % 3,
      is_unlimited: number % 12 === 0,
      rounding_addition: number % 7 === 0 ? 0.01 : 0,
      is_perk: number % 9 === 0,
      in_kind_discount: 0,
      parent_petbenefit: number % 10 === 0 ? benefit(number - 1) : null,
      inactivation_date: number % 18 === 0 ? at(number * 3 + 500) : null,
      activation_date: at(number * 3),
      product_ids: [id("product", (number % 10) + 1)],
      removed: number % 18 === 0,
      ...times(number)
    })),
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
    "consumption-logs": many(150, (number) => ({
      organization_id,
      id: id("consumption", number),
      home_clinic: clinic(number),
      servicing_clinic: clinic(Math.floor(number / 7)),
      invoice_pims_id: String(firstInvoice + ((number - 1) % 40) + 1),
      invoice_date: at(number * 3),
      invoice_line: `line_${slug}_${pad(((number - 1) % 40) + 1)}_${(number % 3) + 1}`,
      invoice_line_aje_delta_discounted: cents(-0.25 * (number % 9)),
      invoice_line_aje_delta_gross: cents(-0.3 * (number % 9)),
      invoice_line_pims_id: `${firstInvoice + ((number - 1) % 40) + 1}-${(number % 3) + 1}`,
      pet: pet(number),
      pet_benefit: benefit(number),
      product_code: pick(products, number).code,
      product_name: pick(products, number).name,
      qty_available_on_plan: (number % 3) + 1,
      qty_consumed: 1,
      qty_in_plan: 1,
      qty_out_of_plan: 0,
      qty_remaining: number % 3,
      revenue_in_plan_total: pick(products, number).price,
      revenue_out_of_plan_total: 0,
      revenue_to_recognize_total: cents(pick(products, number).price * 0.8),
      revenue_to_recognize_per_unit: cents(pick(products, number).price * 0.8),
      is_unlimited_benefit: number % 12 === 0,
      subscription: subscription(number),
      is_deleted: number % 25 === 0,
      ...times(number)
    })),
    invoices: many(40, (number) => ({
      organization_id,
      id: id("invoice", number),
      home_clinic: clinic(number),
      servicing_clinic: clinic(Math.floor(number / 7)),
      client_id: id("client", ((number - 1) % 12) + 1),
      pet: pet(number),
      invoice_pims_id: String(firstInvoice + number),
      invoice_date: at(number * 3),
      status: number % 5 === 0 ? "open" : "paid",
      subtotal: 180.5,
      discount: 18.05,
      tax: 9.6,
      total: 172.05,
      is_deleted: number % 20 === 0,
      deleted_at: number % 20 === 0 ? at(number * 3 + 50) : null,
      ...times(number)
    })),
    "invoice-lines": many(120, (index) => {
      const number = Math.ceil(index / 3)
      const line = ((index - 1) % 3) + 1
      const product = pick(products, index)
      return {
        organization_id,
        id: `line_${slug}_${pad(number)}_${line}`,
        invoice: id("invoice", number),
        clinic: clinic(number),
        pet: pet(number),
        invoice_line_pims_id: `${firstInvoice + number}-${line}`,
        product_code: product.code,
        product_name: product.name,
        quantity: 1,
        unit_price: product.price,
        discount: cents(product.price * 0.1),
        total: cents(product.price * 0.9),
        is_deleted: number % 20 === 0,
        deleted_at: number % 20 === 0 ? at(number * 3 + 50) : null,
        ...times(number)
      }
    }),
    charges: many(150, (number) => ({
      organization_id,
      id: id("charge", number),
      home_clinic: clinic(number),
      servicing_clinic: clinic(Math.floor(number / 7)),
      invoice: id("invoice", ((number - 1) % 40) + 1),
      invoice_pims_id: firstInvoice + ((number - 1) % 40) + 1,
      payment_method_id: `pm_${slug}_${pad(((number - 1) % 12) + 1)}`,
      status: pick(["paid", "open", "paid", "refunded"], number),
      original_amount: 172.05,
      current_amount: 162.05,
      net_paid: number % 4 === 1 ? 0 : 162.05,
      paid_amount: number % 4 === 1 ? 0 : 162.05,
      overpaid_amount: 0,
      outstanding_balance: number % 4 === 1 ? 162.05 : 0,
      refunded_amount: number % 4 === 3 ? 20 : 0,
      pet: pet(number),
      ...times(number)
    })),
    "charge-payments": many(112, (number) => ({
      organization_id,
      id: id("charge_payment", number),
      currency: "usd",
      status: number % 14 === 0 ? "failed" : "succeeded",
      amount: 162.05,
      charge: id("charge", number),
      ...times(number)
    })),
    "charge-adjustments": many(30, (number) => ({
      organization_id,
      id: id("charge_adjustment", number),
      charge: id("charge", number * 5),
      amount: -10,
      reason: pick(["Courtesy", "Wrong product", "Plan discount"], number),
      ...times(number)
    })),
    "charge-refunds": many(37, (number) => ({
      organization_id,
      id: id("charge_refund", number),
      refund_date: at(number * 12 + 5),
      amount: 20,
      charge: id("charge", number * 4 - 1),
      ...times(number)
    }))
  } satisfies Partial<Records>
}
