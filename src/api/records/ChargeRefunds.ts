/** Charge refunds: money returned on a charge. Contract: section 2.7. */
import { Schema } from "effect"
import { HttpApiGroup } from "effect/http-api"
import * as Field from "./Field.ts"
import * as Filter from "./Filter.ts"
import { Service } from "../../records/Repository.ts"
import * as Resource from "./Resource.ts"

export const ChargeRefund = Schema.Struct({
  id: Field.id("charge_refund"),
  refund_date: Field.dateTime("When it was refunded."),
  amount: Field.number("Amount of the refund.", 20),
  charge: Field.ref("charge", "The charge."),
  created_at: Field.createdAt,
  updated_at: Field.updatedAt
}).annotate({ identifier: "ChargeRefund", description: "Money returned on a charge." })

const resource = Resource.make({
  name: "charge-refunds",
  table: "charge_refunds",
  record: ChargeRefund,
  hidden: {},
  orderedBy: "updated_at",
  filters: {
    id: Filter.equals("id"),
    charge: Filter.equals("charge"),
    created_at_since: Filter.since("created_at"),
    updated_at_since: Filter.since("updated_at")
  }
})

export class ChargeRefundsApi extends HttpApiGroup.make("charge-refunds").add(
  Resource.search("contract", resource),
  Resource.get("provisional", resource)
) {}

/** Reads charge refunds. */
export class ChargeRefunds extends Service<ChargeRefunds>()("practice-data/api/records/ChargeRefunds", resource) {}
