/** Answers deliveries: a receipt for what was stored, and for what could not be. */
import { Clock, DateTime, Duration, Effect, Result, Schema } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { IntakeApi } from "../api/IntakeApi.ts"
import type { RequestInvalid } from "../api/Errors.ts"
import { wantedBy } from "../http/JsonPruning.ts"
import { parse, pruning, short } from "../http/JsonText.ts"
import { runSync, runSliced, step } from "../http/TimeSlices.ts"
import { faults, invalidAt, invalidRequest } from "../api/Faults.ts"
import { type Delivery, delivering, taskIdOf } from "./Delivery.ts"
import { decoding } from "./DeliveryBody.ts"
import { headersOf } from "./DeliveryHeaders.ts"
import { type DeliveryHeaders, DeliveryReceipt, IntakeUnavailable, InvoiceDeletions } from "../api/IntakeApi.ts"
import { Scheduler } from "./Scheduler.ts"
import { Sender } from "../api/SignedDelivery.ts"
import { type Receipt, ScheduleOutcome } from "./Task.ts"

const keyReused = invalidAt(["header", "idempotency-key"], faults.idempotencyKeyReused)

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

/** The receipt of a delivery that was received now, and not stored. */
const notStored = Effect.fnUntraced(function* (
  headers: DeliveryHeaders,
  counts: { readonly invoicesCount: number; readonly invoiceLinesCount: number },
  delay: Duration.Duration
) {
  const now = yield* Clock.currentTimeMillis
  const receipt: DeliveryReceipt = {
    status: "error",
    task_id: taskIdOf(headers["x-organization-id"], headers["idempotency-key"]),
    scheduled_for: DateTime.makeUnsafe(now + Duration.toMillis(delay)),
    idempotency_key: headers["idempotency-key"],
    invoices_count: counts.invoicesCount,
    invoice_lines_count: counts.invoiceLinesCount,
    received_at: null
  }
  return receipt
})

const encodeReceipt = Schema.encodeEffect(DeliveryReceipt)

/**
 * The answer while the service reads too many large bodies to read this one, whose items it does not count.
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

const wanted = wantedBy(InvoiceDeletions)

/** What a body delivers, or why it is refused. */
function* reading(headers: DeliveryHeaders, text: string): Generator<void, Result.Result<Delivery, RequestInvalid>> {
  const pruned = yield* pruning(text, wanted)
  if (Result.isFailure(pruned)) return Result.fail(pruned.failure)
  const body = yield* step(() => parse(pruned.success))
  if (Result.isFailure(body)) return Result.fail(body.failure)
  const decoded = yield* decoding(body.success)
  if (Result.isFailure(decoded)) return Result.fail(invalidRequest(decoded.failure))
  return Result.succeed(yield* delivering(headers, decoded.success))
}

/** What a request delivers. */
const read = Effect.fnUntraced(function* (headers: DeliveryHeaders, request: HttpServerRequest.HttpServerRequest) {
  const text = yield* Effect.orDie(request.text)
  return yield* Effect.fromResult(
    text.length <= short ? runSync(reading(headers, text)) : yield* runSliced(() => reading(headers, text))
  )
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
          const { standing } = yield* Sender
          if (standing === "unknown") return yield* unavailable
          const outcome = yield* scheduler
            .schedule(delivery)
            .pipe(Effect.catchTag("SchedulerUnavailable", () => unavailable))
          return yield* ScheduleOutcome.$match(outcome, {
            Scheduled: ({ receipt }) => Effect.succeed(answer(202, "scheduled", delivery, receipt)),
            Duplicate: ({ receipt }) => Effect.succeed(answer(200, "duplicate", delivery, receipt)),
            KeyReused: () => Effect.fail(keyReused)
          })
        })
      )
    })
  )
