/** The handlers of the intake, and of the deletion tasks. */
import { DateTime, type Duration, Effect, Predicate, Result } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentOrganization, smallBody } from "../api/Authorization.ts"
import { DataApi } from "../api/DataApi.ts"
import { type GetRequest, type SearchRequest, State } from "../api/DeletionTasks.ts"
import { RequestInvalid, TaskIdRequired } from "../api/Errors.ts"
import { faults, invalidAt } from "../api/Faults.ts"
import { type DeliveryHeaders, DeliveryReceipt, IntakeApi, IntakeUnavailable, Sender } from "../api/IntakeApi.ts"
import * as Instant from "../api/records/Instant.ts"
import { pageOf } from "../api/records/Requests.ts"
import { ReceivedBody } from "../http/JsonBodyServer.ts"
import * as LargeBodies from "../http/LargeBodies.ts"
import * as Throttle from "../observability/Throttle.ts"
import { note } from "../observability/RequestFacts.ts"
import { moduleBeside } from "../process/Package.ts"
import * as Delivery from "./Delivery.ts"
import { Scheduler } from "./Scheduler.ts"
import { headersOf, loggable } from "./Signature.ts"
import { TaskReads } from "./TaskReads.ts"

const deliveries = moduleBeside(import.meta.url, "Delivery")

/** Reads the delivery of the current request, in the worker thread if it is large. */
const read = Effect.fnUntraced(function* (headers: DeliveryHeaders) {
  const body = yield* ReceivedBody
  const input = { body, headers }
  const outcome =
    body.length <= smallBody ? Delivery.job(input) : yield* LargeBodies.run<typeof Delivery>(deliveries, input)
  return "detail" in outcome ? yield* new RequestInvalid(outcome) : outcome.value
})

const keyReused = invalidAt(["header", "idempotency-key"], faults.idempotencyKeyReused)

const encode = HttpServerResponse.schemaJson(DeliveryReceipt)

const respond = (...response: Parameters<typeof encode>) => Effect.orDie(encode(...response))

/** The Retry-After of a delivery whose organization has a full backlog, in seconds. */
const retryFull = 5

const warnFull = Throttle.make("A delivery was refused: the backlog of its organization is full")

type Sent = Pick<Delivery.Delivery, "idempotencyKey" | "taskId" | "invoicesCount" | "invoiceLinesCount">

/** The receipt of a delivery that was not stored. */
const notStored = ({ idempotencyKey, invoiceLinesCount, invoicesCount, taskId }: Sent, delay: Duration.Duration) =>
  Effect.map(DateTime.now, (now): DeliveryReceipt => ({
    status: "error",
    task_id: taskId,
    scheduled_for: DateTime.addDuration(now, delay),
    idempotency_key: idempotencyKey,
    invoices_count: invoicesCount,
    invoice_lines_count: invoiceLinesCount,
    received_at: null
  }))

/**
 * The response to a delivery that is not read, because the service already reads too many large bodies.
 *
 * @param delay from receiving a delivery to running it
 */
export const busy = (delay: Duration.Duration) =>
  Effect.gen(function* () {
    const headers = yield* headersOf(yield* HttpServerRequest.HttpServerRequest)
    const idempotencyKey = headers["idempotency-key"]
    const taskId = Delivery.taskIdOf(headers["x-organization-id"], idempotencyKey)
    yield* note({ idempotencyKey, taskId, outcome: "unavailable", refusal: "load" })
    const receipt = yield* notStored({ idempotencyKey, taskId, invoicesCount: 0, invoiceLinesCount: 0 }, delay)
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
            yield* note({ taskId: delivery.taskId })
            const refuse = (outcome: "unavailable" | "full", retryAfter: number) =>
              Effect.andThen(note({ outcome }), notStored(delivery, delay)).pipe(
                Effect.flatMap((receipt) => Effect.fail(new IntakeUnavailable({ receipt, retryAfter })))
              )
            const { verification } = yield* Sender
            if (verification === "unavailable") return yield* refuse("unavailable", 1)
            const outcome = yield* Effect.catchTag(scheduler.schedule(delivery), "SchedulerUnavailable", () =>
              refuse("unavailable", 1)
            )
            if (outcome.status === "full") {
              yield* note({ refusal: "limit" })
              yield* warnFull(loggable(delivery.organization))
              return yield* refuse("full", retryFull)
            }
            yield* note({ outcome: outcome.status })
            if (outcome.status === "key_reused") return yield* keyReused
            const { receipt, status } = outcome
            const { idempotencyKey: idempotency_key, taskId: task_id } = delivery
            const body = { ...receipt, status, task_id, idempotency_key }
            return yield* respond(body, { status: status === "scheduled" ? 202 : 200 })
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
  return task_id ?? Delivery.taskIdOf(yield* CurrentOrganization.id, given)
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
