/** A sender of deliveries as the contract describes it: what was not acknowledged is sent again, with the same key. */
import { Data, Effect, Schedule, Schema } from "effect"
import { DeliveryReceipt } from "../../src/api/IntakeApi.ts"
import { type Answer, type Client, json } from "./Client.ts"
import { idOf, organization } from "./Ledger.ts"

/** What a delivery says. */
interface Delivery {
  readonly key: string
  readonly invoices: ReadonlyArray<number>
}

/** Not acknowledged: the store was down or busy, or, with another status than 503, as no delivery of these tests may be. */
class NotAcknowledged extends Data.TaggedError("NotAcknowledged")<{ readonly answer: Answer }> {}

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(DeliveryReceipt))

/** The body of an answer. */
export const receiptOf = ({ text }: Answer) => decode(text)

/** Sends a delivery until it is acknowledged, and returns the answer. It is sent again after a 503 and after no answer. */
export const deliver = (client: Client, { invoices, key }: Delivery) =>
  client
    .call({
      path: "/api/v1/invoice-deletions",
      headers: { "content-type": "application/json", "idempotency-key": key, "x-organization-id": organization },
      body: json({ invoices: invoices.map((invoice) => ({ invoice_id: idOf(invoice) })) })
    })
    .pipe(
      Effect.timeout("5 seconds"),
      Effect.filterOrFail(
        ({ status }) => status === 200 || status === 202,
        (answer) => new NotAcknowledged({ answer })
      ),
      Effect.retry({
        schedule: Schedule.spaced("100 millis"),
        while: (error) => error._tag !== "NotAcknowledged" || error.answer.status === 503
      }),
      Effect.timeout("60 seconds")
    )
