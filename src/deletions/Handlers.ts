/** The handlers of the intake. */
import { DateTime, type Duration, Effect, Schema } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { faults, invalidAt } from "../api/Faults.ts"
import { type DeliveryHeaders, DeliveryReceipt, IntakeApi, IntakeUnavailable } from "../api/IntakeApi.ts"
import { Sender } from "../api/SignedDelivery.ts"
import { type Delivery, taskIdOf } from "./Delivery.ts"
import { headersOf, read } from "./DeliveryRequest.ts"
import { Scheduler } from "./Scheduler.ts"
import { type Receipt, ScheduleOutcome } from "./Task.ts"

const keyReused = invalidAt(["header", "idempotency-key"], faults.idempotencyKeyReused)

const receiptResponse = (code: number, status: "scheduled" | "duplicate", delivery: Delivery, receipt: Receipt) =>
  HttpServerResponse.jsonUnsafe(
    {
      status,
      task_id: receipt.taskId,
      scheduled_for: DateTime.formatIso(receipt.scheduledFor),
      idempotency_key: delivery.idempotencyKey,
      invoices_count: receipt.invoicesCount,
      invoice_lines_count: receipt.invoiceLinesCount,
      received_at: DateTime.formatIso(receipt.receivedAt)
    },
    { status: code }
  )

/** The receipt of a delivery that was not stored. */
const notStored = (
  headers: DeliveryHeaders,
  counts: Pick<Delivery, "invoicesCount" | "invoiceLinesCount">,
  delay: Duration.Duration
) =>
  Effect.map(DateTime.now, (now): DeliveryReceipt => ({
    status: "error",
    task_id: taskIdOf(headers["x-organization-id"], headers["idempotency-key"]),
    scheduled_for: DateTime.addDuration(now, delay),
    idempotency_key: headers["idempotency-key"],
    invoices_count: counts.invoicesCount,
    invoice_lines_count: counts.invoiceLinesCount,
    received_at: null
  }))

const encodeReceipt = Schema.encodeEffect(DeliveryReceipt)

/**
 * The response while the service reads too many large bodies to read this one, whose items it does not count.
 *
 * @param delay from receiving a delivery to running it
 */
export const busy = (delay: Duration.Duration) =>
  Effect.gen(function* () {
    const headers = yield* headersOf(yield* HttpServerRequest.HttpServerRequest)
    const receipt = yield* notStored(headers, { invoicesCount: 0, invoiceLinesCount: 0 }, delay)
    const body = yield* Effect.orDie(encodeReceipt(receipt))
    return HttpServerResponse.jsonUnsafe(body, { status: 503, headers: { "retry-after": "1" } })
  })

/**
 * @param delay from receiving a delivery to running it
 */
export const layer = (delay: Duration.Duration) =>
  HttpApiBuilder.group(
    IntakeApi,
    "invoice-deletions",
    Effect.fnUntraced(function* (handlers) {
      const scheduler = yield* Scheduler
      // Raw, since the payload is decoded in slices.
      return handlers.handleRaw(
        "schedule",
        Effect.fnUntraced(function* ({ headers, request }) {
          const delivery = yield* read(headers, request)
          const unavailable = Effect.flatMap(notStored(headers, delivery, delay), (receipt) =>
            Effect.fail(new IntakeUnavailable({ receipt }))
          )
          const { verification } = yield* Sender
          if (verification === "unavailable") return yield* unavailable
          const outcome = yield* scheduler
            .schedule(delivery)
            .pipe(Effect.catchTag("SchedulerUnavailable", () => unavailable))
          return yield* ScheduleOutcome.$match(outcome, {
            Scheduled: ({ receipt }) => Effect.succeed(receiptResponse(202, "scheduled", delivery, receipt)),
            Duplicate: ({ receipt }) => Effect.succeed(receiptResponse(200, "duplicate", delivery, receipt)),
            KeyReused: () => Effect.fail(keyReused)
          })
        })
      )
    })
  )
