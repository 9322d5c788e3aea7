/** The intake: takes deliveries, and schedules each once. */
import { type Duration, Effect, Predicate, Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { faults, invalidAt, invalidRequest, tooLong, validationErrors } from "../api/Faults.ts"
import * as Intake from "../api/IntakeApi.ts"
import { type Delivery, makeDelivery, type Receipt, makeReceipt } from "../deletions/Delivery.ts"
import { Scheduler } from "../deletions/Scheduler.ts"
import { parse, receivedBody } from "../http/JsonBodyServer.ts"
import { note } from "../observability/RequestFacts.ts"
import * as Logging from "../observability/Logging.ts"

const countItems = (list: unknown) => (Array.isArray(list) ? list.length : 0)

const decodeDeletions = Schema.decodeUnknownEffect(Intake.InvoiceDeletions, { errors: "all" })

/** Decodes a body. Its items are counted first: all faults of very many would take long. */
export const decode = Effect.fnUntraced(function* (body: unknown) {
  const { invoice_lines, invoices, ...others } = Predicate.isObject(body) ? body : {}
  const count = countItems(invoices) + countItems(invoice_lines)
  if (count > Intake.maximumItems) return yield* invalidAt(["body"], tooLong(Intake.maximumItems, count))
  const unknown = Object.keys(others)
  if (invoices === undefined && invoice_lines === undefined && unknown.length > 0) {
    return yield* invalidRequest(unknown.map((name) => ({ loc: ["body", name], ...faults.noLists })))
  }
  return yield* Effect.mapError(decodeDeletions(body), ({ issue }) => invalidRequest(validationErrors(issue, ["body"])))
})

/** Reads the delivery of the current request. */
const read = Effect.fnUntraced(function* (headers: Intake.DeliveryHeaders) {
  const body = yield* Effect.fromResult(parse(yield* receivedBody))
  return makeDelivery(headers, yield* decode(body))
})

const keyReused = invalidAt(["header", "idempotency-key"], faults.idempotencyKeyReused)

type Sent = Pick<Delivery, "idempotencyKey" | "taskId" | "counts">

const encode = HttpServerResponse.schemaJson(Intake.DeliveryReceipt)

const respond = (...response: Parameters<typeof encode>) => Effect.orDie(encode(...response))

/** The receipt of a delivery in the words of the contract. */
const toAnswer = (
  { idempotencyKey, taskId }: Sent,
  status: Intake.DeliveryReceipt["status"],
  receipt: Pick<Intake.DeliveryReceipt, keyof Receipt>
): Intake.DeliveryReceipt => ({ ...receipt, status, task_id: taskId, idempotency_key: idempotencyKey })

/** The Retry-After of a delivery that was not stored, in seconds. `full`: the backlog is. */
const retryAfter = { unavailable: 1, full: 5 } as const

const refuse = Effect.fnUntraced(function* (sent: Sent, delay: Duration.Duration, reason: keyof typeof retryAfter) {
  const receipt = { ...(yield* makeReceipt(sent, delay)), received_at: null }
  return yield* new Intake.IntakeUnavailable({
    receipt: toAnswer(sent, "error", receipt),
    retryAfter: retryAfter[reason]
  })
})

const warnFull = Logging.limitedWarning(
  "A delivery was refused: the backlog of its organization, or of all unknown, is full"
)

const unavailable = { status: "unavailable" } as const

/**
 * The intake.
 *
 * @param delay from receiving a delivery to running it
 */
export const intake = (delay: Duration.Duration) =>
  HttpApiBuilder.group(
    Intake.IntakeApi,
    "invoice-deletions",
    Effect.fnUntraced(function* (handlers) {
      const scheduler = yield* Scheduler
      // Raw, since the signature is over the bytes, and faults are listed only up to their maximum.
      return handlers.handleRaw(
        "schedule",
        Effect.fnUntraced(function* ({ headers }) {
          const delivery = yield* read(headers)
          yield* note({ taskId: delivery.taskId })
          const { verification } = yield* Intake.Sender
          const scheduling = Effect.orElseSucceed(scheduler.schedule(delivery), () => unavailable)
          const outcome = verification === "passed" ? yield* scheduling : unavailable
          yield* note({ outcome: outcome.status })
          if (outcome.status === "key_reused") return yield* keyReused
          if ("receipt" in outcome) {
            const answer = toAnswer(delivery, outcome.status, outcome.receipt)
            return yield* respond(answer, { status: outcome.status === "scheduled" ? 202 : 200 })
          }
          if (outcome.status === "full") {
            yield* note({ refusal: "limit" })
            yield* warnFull(delivery.organization)
          }
          return yield* refuse(delivery, delay, outcome.status)
        })
      )
    })
  )
