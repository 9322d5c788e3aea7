/** Charge payments: payments towards a charge. Contract: section 2.6. */
import { Schema } from "effect"
import { HttpApiGroup } from "effect/http-api"
import * as Field from "./Field.ts"
import * as Filter from "./Filter.ts"
import { Service } from "../../records/Repository.ts"
import * as Resource from "./Resource.ts"

export const ChargePayment = Schema.Struct({
  id: Field.id("charge_payment"),
  currency: Field.text("Currency, as ISO 4217.", "usd"),
  status: Field.text("State of the payment.", "succeeded"),
  amount: Field.number("Amount of the payment.", 110),
  charge: Field.ref("charge", "The charge."),
  created_at: Field.createdAt,
  updated_at: Field.updatedAt
}).annotate({ identifier: "ChargePayment", description: "A payment towards a charge." })

const resource = Resource.make({
  name: "charge-payments",
  table: "charge_payments",
  record: ChargePayment,
  hidden: {},
  orderedBy: "updated_at",
  filters: {
    id: Filter.equals("id"),
    charge: Filter.equals("charge"),
    status: Filter.equals("status"),
    created_at_since: Filter.since("created_at"),
    updated_at_since: Filter.since("updated_at")
  }
})

export class ChargePaymentsApi extends HttpApiGroup.make("charge-payments").add(
  Resource.search("provisional", resource),
  Resource.get("contract", resource)
) {}

/** Reads charge payments. */
export class ChargePayments extends Service<ChargePayments>()("practice-data/api/records/ChargePayments", resource) {}
