/** The handlers of the intake. */
import { DateTime, type Duration, Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { faults, invalidAt } from "../api/Faults.ts"
import { DeliveryReceipt, IntakeApi, IntakeUnavailable } from "../api/IntakeApi.ts"
import { Sender } from "../api/SignedDelivery.ts"
import { type Delivery, taskIdOf } from "./Delivery.ts"
import { headersOf, read } from "./DeliveryRequest.ts"
import * as Throttle from "../database/Throttle.ts"
import { note, type RequestFacts } from "../observability/RequestFacts.ts"
import { Scheduler } from "./Scheduler.ts"
import { loggable } from "./Signature.ts"
import { type Receipt, ScheduleOutcome } from "./Task.ts"

const keyReused = invalidAt(["header", "idempotency-key"], faults.idempotencyKeyReused)

const encode = HttpServerResponse.schemaJson(DeliveryReceipt)

const respond = (...response: Parameters<typeof encode>) => Effect.orDie(encode(...response))

const receiptOf = (
  status: DeliveryReceipt["status"],
  idempotencyKey: string,
  receipt: Omit<Receipt, "receivedAt"> & { readonly receivedAt: DateTime.Utc | null }
): DeliveryReceipt => ({
  status,
  task_id: receipt.taskId,
  scheduled_for: receipt.scheduledFor,
  idempotency_key: idempotencyKey,
  invoices_count: receipt.invoicesCount,
  invoice_lines_count: receipt.invoiceLinesCount,
  received_at: receipt.receivedAt
})

const outcomes = {
  Scheduled: "scheduled",
  Duplicate: "duplicate",
  KeyReused: "key_reused",
  Full: "full"
} as const satisfies Readonly<Record<ScheduleOutcome["_tag"], RequestFacts["outcome"]>>

/** After how many seconds to send a delivery again whose organization has as much pending as it may. */
const retryFull = 5

const warnFull = Throttle.make("A delivery was refused: its organization has as much pending as it may")

/** The receipt of a delivery that was not stored. */
const notStored = (
  idempotencyKey: string,
  delivery: Pick<Delivery, "taskId" | "invoicesCount" | "invoiceLinesCount">,
  delay: Duration.Duration
) =>
  Effect.map(DateTime.now, (now) =>
    receiptOf("error", idempotencyKey, {
      ...delivery,
      scheduledFor: DateTime.addDuration(now, delay),
      receivedAt: null
    })
  )

/**
 * The response while the service reads too many large bodies to read this one, whose items it does not count.
 *
 * @param delay from receiving a delivery to running it
 */
export const busy = (delay: Duration.Duration) =>
  Effect.gen(function* () {
    const headers = yield* headersOf(yield* HttpServerRequest.HttpServerRequest)
    const key = headers["idempotency-key"]
    const taskId = taskIdOf(headers["x-organization-id"], key)
    yield* note({ idempotencyKey: key, taskId, outcome: "unavailable", refusal: "load" })
    const receipt = yield* notStored(key, { taskId, invoicesCount: 0, invoiceLinesCount: 0 }, delay)
    return yield* respond(receipt, { status: 503, headers: { "retry-after": "1" } })
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
      // Raw, since a large payload is decoded in the worker thread.
      return handlers.handleRaw(
        "schedule",
        Effect.fnUntraced(
          function* ({ headers }) {
            const delivery = yield* read(headers)
            const { idempotencyKey } = delivery
            yield* note({ taskId: delivery.taskId })
            const refuse = (retryAfter: number) =>
              Effect.flatMap(notStored(idempotencyKey, delivery, delay), (receipt) =>
                Effect.fail(new IntakeUnavailable({ receipt, retryAfter }))
              )
            const unavailable = Effect.andThen(note({ outcome: "unavailable" }), refuse(1))
            const { verification } = yield* Sender
            if (verification === "unavailable") return yield* unavailable
            const outcome = yield* scheduler
              .schedule(delivery)
              .pipe(Effect.catchTag("SchedulerUnavailable", () => unavailable))
            yield* note({ outcome: outcomes[outcome._tag] })
            return yield* ScheduleOutcome.$match(outcome, {
              Scheduled: ({ receipt }) => respond(receiptOf("scheduled", idempotencyKey, receipt), { status: 202 }),
              Duplicate: ({ receipt }) => respond(receiptOf("duplicate", idempotencyKey, receipt), { status: 200 }),
              KeyReused: () => Effect.fail(keyReused),
              Full: () =>
                Effect.all([note({ refusal: "limit" }), warnFull(loggable(delivery.organization))]).pipe(
                  Effect.andThen(refuse(retryFull))
                )
            })
          },
          Effect.catchTag("LargeBodiesBusy", () => busy(delay))
        )
      )
    })
  )
