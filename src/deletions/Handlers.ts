/** The handlers of the intake, and of the deletion tasks. */
import { DateTime, type Duration, Effect, Predicate, Result } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import { DataApi } from "../api/DataApi.ts"
import { type GetRequest, type SearchRequest, State } from "../api/DeletionTasks.ts"
import { TaskIdRequired } from "../api/Errors.ts"
import { faults, invalidAt } from "../api/Faults.ts"
import { DeliveryReceipt, IntakeApi, IntakeUnavailable, Sender } from "../api/IntakeApi.ts"
import * as Instant from "../api/records/Instant.ts"
import { pageOf } from "../api/records/Requests.ts"
import * as Throttle from "../observability/Throttle.ts"
import { note } from "../observability/RequestFacts.ts"
import { type Delivery, taskIdOf } from "./Delivery.ts"
import { headersOf, read } from "./DeliveryRequest.ts"
import { Scheduler } from "./Scheduler.ts"
import { loggable } from "./Signature.ts"
import { type Receipt, ScheduleOutcome } from "./Task.ts"
import { TaskReads } from "./TaskReads.ts"

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
} as const

/** The Retry-After of a delivery whose organization has a full backlog, in seconds. */
const retryFull = 5

const warnFull = Throttle.make("A delivery was refused: the backlog of its organization is full")

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
 * The response to a delivery that is not read, because the service already reads too many large bodies.
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
 * The intake.
 *
 * @param delay from receiving a delivery to running it
 */
export const intake = (delay: Duration.Duration) =>
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
            const { idempotencyKey: key, organization, taskId } = delivery
            yield* note({ taskId })
            const refuse = (retryAfter: number) =>
              Effect.flatMap(notStored(key, delivery, delay), (receipt) =>
                Effect.fail(new IntakeUnavailable({ receipt, retryAfter }))
              )
            const unavailable = Effect.andThen(note({ outcome: "unavailable" }), refuse(1))
            const { verification } = yield* Sender
            if (verification === "unavailable") return yield* unavailable
            const outcome = yield* Effect.catchTag(
              scheduler.schedule(delivery),
              "SchedulerUnavailable",
              () => unavailable
            )
            yield* note({ outcome: outcomes[outcome._tag] })
            return yield* ScheduleOutcome.$match(outcome, {
              Scheduled: ({ receipt }) => respond(receiptOf("scheduled", key, receipt), { status: 202 }),
              Duplicate: ({ receipt }) => respond(receiptOf("duplicate", key, receipt), { status: 200 }),
              KeyReused: () => Effect.fail(keyReused),
              Full: () =>
                Effect.all([note({ refusal: "limit" }), warnFull(loggable(organization))]).pipe(
                  Effect.andThen(refuse(retryFull))
                )
            })
          },
          Effect.catchTag("LargeBodiesBusy", () => busy(delay))
        )
      )
    })
  )

/** The id of the requested task. That of a delivery is derived from its key. */
const idOf = Effect.fnUntraced(function* ({ idempotency_key, task_id }: GetRequest) {
  const [given, ...others] = [task_id, idempotency_key].filter(Predicate.isNotNullish)
  if (given === undefined || others.length > 0 || given.trim() === "") return yield* new TaskIdRequired()
  return task_id ?? taskIdOf(yield* CurrentOrganization.id, given)
})

/** The criteria of a request. No task is in an unknown state. */
const criteriaOf = ({ scheduled_since = null, state = null }: SearchRequest) => ({
  states: State.literals.filter((each) => state === null || state === each),
  scheduledSince: scheduled_since === null ? undefined : Result.getOrUndefined(Instant.parse(scheduled_since))
})

/** The deletion tasks. */
export const tasks = HttpApiBuilder.group(DataApi, "deletion-tasks", (handlers) =>
  Effect.map(TaskReads, (reads) =>
    handlers.handleAll({
      search: Effect.fnUntraced(function* ({ payload }) {
        yield* CurrentOrganization.check(payload)
        return { body: yield* reads.search(criteriaOf(payload), yield* pageOf(payload)) }
      }),
      get: Effect.fnUntraced(function* ({ payload }) {
        yield* CurrentOrganization.check(payload)
        return yield* reads.get(yield* idOf(payload))
      })
    })
  )
)
