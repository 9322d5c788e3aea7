/** Answers deliveries: a receipt for what was stored, and for what could not be. */
import { Clock, DateTime, Duration, Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { IntakeApi } from "../Api.ts"
import { RequestInvalid } from "../Errors.ts"
import { faults } from "../Validation.ts"
import { type Delivery, deliveryOf } from "./Delivery.ts"
import { IntakeUnavailable } from "./InvoiceDeletionsApi.ts"
import { Scheduler } from "./Scheduler.ts"
import { Sender } from "./SignedDelivery.ts"
import { type Receipt, ScheduleOutcome } from "./Task.ts"

const keyReused = new RequestInvalid({
  detail: [{ loc: ["header", "idempotency-key"], ...faults.idempotencyKeyReused }]
})

const answer = (status: number, word: "scheduled" | "duplicate", delivery: Delivery, receipt: Receipt) =>
  HttpServerResponse.jsonUnsafe(
    {
      status: word,
      task_id: receipt.taskId,
      scheduled_for: DateTime.formatIso(receipt.scheduledFor),
      idempotency_key: delivery.idempotencyKey,
      invoices_count: receipt.invoicesCount,
      invoice_lines_count: receipt.invoiceLinesCount,
      received_at: DateTime.formatIso(receipt.receivedAt)
    },
    { status }
  )

/** A store that is down answers as if the delivery were received now, and was not. */
const unavailable = (delivery: Delivery, delay: Duration.Duration) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.fail(
      new IntakeUnavailable({
        receipt: {
          status: "error",
          task_id: delivery.taskId,
          scheduled_for: DateTime.makeUnsafe(now + Duration.toMillis(delay)),
          idempotency_key: delivery.idempotencyKey,
          invoices_count: delivery.invoicesCount,
          invoice_lines_count: delivery.invoiceLinesCount,
          received_at: null
        }
      })
    )
  )

/**
 * @param delay from receiving a delivery to running it
 */
export const layer = (delay: Duration.Duration) =>
  HttpApiBuilder.group(
    IntakeApi,
    "invoice-deletions",
    Effect.fnUntraced(function* (handlers) {
      const scheduler = yield* Scheduler
      return handlers.handle(
        "schedule",
        Effect.fnUntraced(function* ({ headers, payload }) {
          const delivery = deliveryOf(headers, payload)
          const { standing } = yield* Sender
          if (standing === "unknown") return yield* unavailable(delivery, delay)
          const outcome = yield* scheduler
            .schedule(delivery)
            .pipe(Effect.catchTag("SchedulerUnavailable", () => unavailable(delivery, delay)))
          return yield* ScheduleOutcome.$match(outcome, {
            Scheduled: ({ receipt }) => Effect.succeed(answer(202, "scheduled", delivery, receipt)),
            Duplicate: ({ receipt }) => Effect.succeed(answer(200, "duplicate", delivery, receipt)),
            KeyReused: () => Effect.fail(keyReused)
          })
        })
      )
    })
  )
