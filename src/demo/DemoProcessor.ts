/** The demo processor: believable objects in the account that each demo organization's first clinic has. */
import { Array } from "effect"
import type { PspObject } from "../api/Psp.ts"
import type { Accounts } from "../psp/PspClient.ts"
import { organizations } from "./DemoData.ts"

/** The Stripe account of the first clinic of an organization of the demo. */
export const accountOf = (slug: string) => `acct_demo_${slug}`

const start = 1_767_600_000
const hour = 3600

const pad = (number: number) => String(number).padStart(4, "0")

const amount = (number: number) => 2450 + (number % 24) * 125
const fee = (number: number) => Math.round(amount(number) * 0.029) + 30

const demoObjects = (slug: string) => {
  const id = (prefix: string, number: number) => `${prefix}_${slug}_${pad(number)}`
  const many = (count: number, object: string, prefix: string, more: (number: number) => object) =>
    Array.makeBy(count, (index): PspObject => {
      const number = index + 1
      const created = start + Math.floor(number / 3) * hour
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
  organizations.map(({ slug }) => [accountOf(slug), demoObjects(slug)])
)
