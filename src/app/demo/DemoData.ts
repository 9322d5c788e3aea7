/**
 * The demo data: two organizations with records of each resource, and the objects of an account at the processor, the same
 * on every machine. Fields that are not given follow from the examples of their schema: ids and times count up, other
 * values are the examples.
 */
import { Array, DateTime } from "effect"
import { chargeAdjustments, chargePayments, chargeRefunds, charges } from "../../api/records/Charges.ts"
import type { Fields } from "../../api/records/Field.ts"
import { consumptionLogs, invoiceLines, invoices } from "../../api/records/Invoices.ts"
import type { PspObject } from "../../api/Psp.ts"
import type { Records } from "../../api/records/index.ts"
import { clinics, organization, products } from "../../api/records/Organizations.ts"
import { cancellationPaymentIntents, paymentIntents, paymentPlans } from "../../api/records/Payments.ts"
import { petBenefits, pets, subscriptions } from "../../api/records/Pets.ts"
import type { Filters, Resource, Stored } from "../../api/records/Resource.ts"
import type { Accounts } from "../../psp/PspClient.ts"
import { build } from "../../records/Rows.ts"

/** The demo organizations, and the API key of each. Anyone may know these keys: they open nothing but demo data. */
export const organizations = [
  { slug: "oakridge", name: "Oakridge Veterinary Group", key: "pda_demo_oakridge", firstInvoice: 100_000 },
  { slug: "harbor", name: "Harbor Pet Partners", key: "pda_demo_harbor", firstInvoice: 200_000 }
] as const

export const demoKeys = organizations.map(({ key, slug }) => ({ organization: `org_${slug}`, key }))

/** The account of an organization's first clinic at the processor. */
const account = (slug: string) => `acct_demo_${slug}`

const pad = (number: number, length = 4) => String(number).padStart(length, "0")

const pick = <A>(values: readonly [A, ...Array<A>], index: number): A => values[index % values.length] ?? values[0]

/** A number from 1 to `count` that starts again after it. */
const within = (count: number, number: number) => ((number - 1) % count) + 1

const start = Date.UTC(2026, 0, 5, 8, 0, 0)
const hour = 3_600_000
const at = (hours: number) => DateTime.makeUnsafe(start + hours * hour)

const cents = (amount: number) => Math.round(amount * 100) / 100

/** The number of ids by their prefix. */
const counts = {
  clinic: 2,
  client: 12,
  pet: 24,
  subscription: 24,
  payment_plan: 24,
  payment_intent: 120,
  cancellation: 6,
  benefit: 72,
  product: 10,
  consumption: 150,
  invoice: 40,
  line: 120,
  charge: 150,
  charge_payment: 112,
  charge_adjustment: 30,
  charge_refund: 37
}
type Prefix = keyof typeof counts

const isPrefix = (text: string): text is Prefix => text in counts

const catalog = Array.make(
  { product_code: "EXAM-01", product_name: "Wellness exam", price: 68 },
  { product_code: "VACC-RAB", product_name: "Rabies vaccine", price: 32.5 },
  { product_code: "LAB-CBC", product_name: "Complete blood count", price: 84.25 }
)

const pickSpecies = (number: number) => pick(["Canine", "Feline"], number)
const pickPlan = (number: number) => pick(["Gold", "Silver", "Puppy"], number)
const pickPrice = (number: number) => cents(24.5 + (number % 24) * 1.25)

/** Each twentieth invoice is deleted, with its lines. */
const deletion = (number: number) => {
  const is_deleted = number % 20 === 0
  return { is_deleted, deleted_at: is_deleted ? at(number * 3 + 50) : null }
}

/** The records of one organization, by the name of their resource. */
export const recordsOf = ({ slug, name, firstInvoice }: (typeof organizations)[number]) => {
  const organization_id = `org_${slug}`
  const id = (prefix: Prefix, all: number) => {
    const number = within(counts[prefix], all)
    // Each invoice has three lines.
    if (prefix === "line") return `line_${slug}_${pad(Math.ceil(number / 3))}_${within(3, number)}`
    return `${prefix}_${slug}_${pad(number, prefix === "clinic" ? 2 : 4)}`
  }
  /** The value of a field in the record of a number, from its example: ids and times count up. */
  const follow = (example: unknown, number: number): unknown => {
    if (Array.isArray(example)) return example.map((one) => follow(one, number))
    if (DateTime.isDateTime(example)) return at(number * 3)
    const [, prefix = ""] = /^(\w+)_oakridge_\d+/.exec(String(example)) ?? []
    return isPrefix(prefix) ? id(prefix, number) : example
  }
  const plan = (number: number) => ({
    plan_name: pickPlan(number),
    species: pickSpecies(number),
    wellnes_plan_name: `${pickPlan(number)} ${pickSpecies(number)} Wellness`
  })
  /** The records of a resource, numbered from 1. Every ten of them share the time of their change. */
  const records = <Name extends string, F extends Fields, Hidden extends Fields, S extends Filters>(
    prefix: Prefix,
    resource: Resource<Name, F, Hidden, S>,
    make: (number: number) => Partial<Stored<Resource<Name, F, Hidden, S>>>
  ) => {
    const example = build(resource)
    return Array.makeBy(counts[prefix], (index) => {
      const number = index + 1
      const changed = at(Math.ceil(number / 10) * 30 + 24)
      const values = Object.entries(example).map(([field, value]) => [
        field,
        field === resource.orderedBy ? changed : follow(value, number)
      ])
      return { ...example, ...Object.fromEntries(values), organization_id, ...make(number) }
    })
  }
  return {
    organization: [{ ...build(organization), organization_id, id: organization_id, name }],
    clinics: records("clinic", clinics, (number) => ({
      name: `${name} ${pick(["South", "North"], number)}`,
      organization: organization_id,
      processor_account: number === 1 ? account(slug) : null
    })),
    pets: records("pet", pets, (number) => ({
      name: pick(["Biscuit", "Mochi", "Rex", "Luna", "Pepper", "Olive", "Ziggy", "Hazel"], number),
      species: pickSpecies(number),
      breed: number % 9 === 0 ? null : pick(["Beagle", "Siamese", "Mixed", "Maine Coon"], number),
      sex: pick(["female", "male"], number),
      date_of_birth: number % 11 === 0 ? null : `20${15 + (number % 9)}-${pad((number % 12) + 1, 2)}-14`
    })),
    subscriptions: records("subscription", subscriptions, (number) => ({
      plan_name: pickPlan(number),
      status: number % 8 === 0 ? "cancelled" : "active",
      cancelled_at: number % 8 === 0 ? at(number * 3 + 2000) : null,
      price: pickPrice(number),
      auto_renew: number % 8 !== 0
    })),
    "payment-plans": records("payment_plan", paymentPlans, (number) => ({
      status: number % 8 === 0 ? "stopped" : "active",
      payment_amount: pickPrice(number),
      next_payment_date: number % 8 === 0 ? null : at(number * 3 + 720)
    })),
    "payment-intents": records("payment_intent", paymentIntents, (number) => ({
      ...plan(number),
      payment_amount: pickPrice(number),
      captured_date: number % 6 === 0 ? null : at(number * 3 + 25),
      paid: number % 6 !== 0,
      payment_modifications: number % 20 === 0 ? Array.make("plan upgraded") : null,
      processor_payment_intent_id: `pi_${slug}_${pad(number)}`
    })),
    "cancellation-payment-intents": records("cancellation", cancellationPaymentIntents, (number) => ({
      ...plan(number),
      paymentIntent_or_refund_id: `pi_${slug}_${pad(number)}`,
      isSucceeded: number !== 5
    })),
    "pet-benefits": records("benefit", petBenefits, (number) => ({
      benefit_name: pick(catalog, number).product_name,
      retail_value: pick(catalog, number).price,
      parent_petbenefit: null,
      inactivation_date: number % 18 === 0 ? at(number * 3 + 500) : null,
      removed: number % 18 === 0
    })),
    products: records("product", products, (number) => {
      const { price, ...product } = pick(catalog, number)
      return { ...product, pims_id: `P-${1000 + number}`, retail_price: price, member_price: cents(price * 0.8) }
    }),
    "consumption-logs": records("consumption", consumptionLogs, (number) => {
      const { price, ...product } = pick(catalog, number)
      const line = within(counts.line, number)
      const invoice = firstInvoice + Math.ceil(line / 3)
      return {
        ...product,
        servicing_clinic: id("clinic", Math.ceil(number / 7)),
        invoice_pims_id: String(invoice),
        invoice_line_pims_id: `${invoice}-${within(3, line)}`,
        revenue_in_plan_total: price,
        is_deleted: number % 25 === 0
      }
    }),
    invoices: records("invoice", invoices, (number) => ({
      ...deletion(number),
      servicing_clinic: id("clinic", Math.ceil(number / 7)),
      invoice_pims_id: String(firstInvoice + number),
      status: number % 5 === 0 ? "open" : "paid"
    })),
    "invoice-lines": records("line", invoiceLines, (index) => {
      const number = Math.ceil(index / 3)
      const { price, ...product } = pick(catalog, index)
      return {
        ...product,
        ...deletion(number),
        invoice: id("invoice", number),
        clinic: id("clinic", number),
        pet: id("pet", number),
        invoice_line_pims_id: `${firstInvoice + number}-${within(3, index)}`,
        unit_price: price,
        total: price
      }
    }),
    charges: records("charge", charges, (number) => ({
      servicing_clinic: id("clinic", Math.ceil(number / 7)),
      invoice_pims_id: firstInvoice + within(counts.invoice, number),
      status: pick(["paid", "open", "paid", "refunded"], number),
      ...(number % 4 === 1 && { net_paid: 0, paid_amount: 0, outstanding_balance: 110 }),
      refunded_amount: number % 4 === 3 ? 20 : 0
    })),
    "charge-payments": records("charge_payment", chargePayments, (number) => ({
      status: number % 14 === 0 ? "failed" : "succeeded"
    })),
    "charge-adjustments": records("charge_adjustment", chargeAdjustments, (number) => ({
      charge: id("charge", number * 5)
    })),
    "charge-refunds": records("charge_refund", chargeRefunds, (number) => ({ charge: id("charge", number * 4 - 1) }))
  } satisfies Partial<Records>
}

const amount = (number: number) => 2450 + (number % 24) * 125
const fee = (number: number) => Math.round(amount(number) * 0.029) + 30

/** The objects of the first clinic's account at the processor, by their kinds. */
const demoObjects = (slug: string) => {
  const id = (prefix: string, number: number) => `${prefix}_${slug}_${pad(number)}`
  const many = (count: number, object: string, prefix: string, more: (number: number) => object) =>
    Array.makeBy(count, (index): PspObject => {
      const number = index + 1
      const created = (start + Math.floor(number / 3) * hour) / 1000
      return { id: id(prefix, number), object, created, currency: "usd", ...more(number) }
    })
  return {
    payments: many(120, "payment_intent", "pi", (number) => ({
      amount: amount(number),
      latest_charge: id("ch", number),
      status: "succeeded"
    })),
    charges: many(120, "charge", "ch", (number) => ({
      amount: amount(number),
      payment_intent: id("pi", number),
      status: "succeeded"
    })),
    refunds: many(8, "refund", "re", (number) => ({
      amount: 1000,
      charge: id("ch", number * 15),
      status: "succeeded"
    })),
    disputes: many(2, "dispute", "dp", (number) => ({
      amount: amount(number * 40),
      charge: id("ch", number * 40),
      status: number === 1 ? "won" : "needs_response"
    })),
    payouts: many(12, "payout", "po", (number) => ({ amount: 25_000 + number * 310, status: "paid" })),
    "balance-transactions": many(140, "balance_transaction", "txn", (number) => ({
      amount: amount(number),
      fee: fee(number),
      net: amount(number) - fee(number),
      source: id("ch", number)
    }))
  }
}

/** The objects of each demo account, by its id. */
export const accounts: Accounts = Object.fromEntries(
  organizations.map(({ slug }) => [account(slug), demoObjects(slug)])
)
