/** The intake, which checks the headers and signatures (Standard Webhooks) of deliveries, and the deletion tasks. */
import { createHmac, timingSafeEqual } from "node:crypto"
import { IncomingMessage } from "node:http"
import { Context, type Duration, Effect, Layer, Predicate, Record, Redacted, Result, Schema } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentOrganization } from "../api/Authorization.ts"
import { DataApi } from "../api/DataApi.ts"
import { type GetRequest, type SearchRequest, State } from "../api/DeletionTasks.ts"
import { errorHeaders, RequestInvalid, TaskIdRequired, Unauthorized } from "../api/Errors.ts"
import { faults, invalidAt, invalidRequest, validationErrors } from "../api/Faults.ts"
import * as Intake from "../api/IntakeApi.ts"
import * as Instant from "../api/records/Instant.ts"
import { pageOf } from "../api/records/Requests.ts"
import { parse, ReceivedBody } from "../http/JsonBodyServer.ts"
import type { Sender } from "../http/LargeBodies.ts"
import * as Throttle from "../observability/Throttle.ts"
import { note } from "../observability/RequestFacts.ts"
import * as Time from "../process/Time.ts"
import * as Delivery from "./Delivery.ts"
import { IntakeSecrets } from "./IntakeSecrets.ts"
import { Scheduler } from "./Scheduler.ts"
import { type Receipt, receiptOf } from "./Task.ts"
import { TaskReads } from "./TaskReads.ts"

/** True if an organization without a secret is refused. */
export const SignaturesRequired = Context.Reference<boolean>("practice-data/deletions/SignaturesRequired", {
  defaultValue: () => false
})

const decodeHeaders = Schema.decodeUnknownEffect(Intake.DeliveryHeaders, { errors: "all" })

/** The headers of a delivery, or all their faults. A repeated header is an array, which is not a string. */
export const headersOf = ({ headers, source }: HttpServerRequest.HttpServerRequest) => {
  const distinct = source instanceof IncomingMessage ? source.headersDistinct : {}
  // Node joins the values of a repeated header.
  const repeated = Record.filter(
    { "idempotency-key": distinct["idempotency-key"], "x-organization-id": distinct["x-organization-id"] },
    (values = []) => values.length > 1
  )
  return Effect.mapError(decodeHeaders({ ...headers, ...repeated }), ({ issue }) =>
    invalidRequest(validationErrors(issue, ["header"]))
  )
}

/** The time of a signature may be this many seconds from now. */
const tolerance = 300

/** The MAC of a content with a secret; undefined where the secret is malformed. */
const macOf = (secret: Redacted.Redacted, prefix: string, body: Uint8Array) => {
  const text = Redacted.value(secret).replace(/^whsec_/, "")
  const key = Buffer.from(text, "base64")
  if (key.length === 0 || key.toString("base64") !== text) return undefined
  return createHmac("sha256", key).update(prefix).update(body).digest("base64")
}

/** The signatures of a request with its time in seconds, or the reason why they are refused whatever the body. */
const claimOf = (headers: Intake.DeliveryHeaders, now: number) => {
  const { "webhook-id": id = "", "webhook-timestamp": timestamp = "", "webhook-signature": signature = "" } = headers
  if (id === "") return "webhook-id is missing"
  if (id !== headers["idempotency-key"]) return "webhook-id is not the Idempotency-Key"
  if (timestamp === "") return "webhook-timestamp is missing"
  const signedAt = parseInt(timestamp, 10)
  if (Number.isNaN(signedAt)) return "webhook-timestamp is not a number"
  if (signedAt < now - tolerance) return `webhook-timestamp is too old: more than ${tolerance} seconds ago`
  if (signedAt > now + tolerance) return `webhook-timestamp is too new: more than ${tolerance} seconds ahead`
  if (signature.trim() === "") return "webhook-signature is missing"
  const given = signature.split(" ").filter((each) => /^v1,./.test(each))
  if (given.length === 0) return "webhook-signature is malformed: it has no signature of version v1"
  return { prefix: `${id}.${signedAt}.`, given }
}

const currentSeconds = Effect.map(Time.wall, (now) => Math.floor(now / 1000))

/** The reason why the signature of a request is refused; undefined where it is good. */
const signatureFault = Effect.fnUntraced(function* (
  headers: Intake.DeliveryHeaders,
  secrets: ReadonlyArray<Redacted.Redacted> | "unsigned"
) {
  if (secrets.length === 0) return "all signing secrets of the organization are revoked"
  if (secrets === "unsigned") return "the organization has no signing secret"
  const claim = claimOf(headers, yield* currentSeconds)
  if (typeof claim === "string") return claim
  const { bytes } = yield* ReceivedBody
  for (const secret of secrets) {
    const expected = Buffer.from(`v1,${macOf(secret, claim.prefix, bytes) ?? ""}`)
    const isExpected = (text: Buffer) => text.length === expected.length && timingSafeEqual(text, expected)
    if (claim.given.some((each) => isExpected(Buffer.from(each)))) return undefined
    // A large body takes some milliseconds for each secret.
    yield* Effect.yieldNow
  }
  return "webhook-signature does not match"
})

// An organization whose secret is wrong, or a stranger, repeats its deliveries.
const warn = Throttle.make("A delivery was refused for its signature", 50)

/** The middleware that checks headers and signatures, over `IntakeSecrets`. */
export const signedDelivery = Layer.effect(
  Intake.SignedDelivery,
  Effect.gen(function* () {
    const intakeSecrets = yield* IntakeSecrets
    const isRequired = yield* SignaturesRequired
    return Intake.SignedDelivery.of(
      Effect.fnUntraced(function* (handler) {
        const request = yield* HttpServerRequest.HttpServerRequest
        const headers = yield* headersOf(request)
        const organization = headers["x-organization-id"]
        const idempotencyKey = headers["idempotency-key"]
        yield* note({ organization, isKnown: false, idempotencyKey })
        const secrets = yield* Effect.option(intakeSecrets.of(organization))
        if (secrets._tag === "None") {
          return yield* Effect.provideService(handler, Intake.Sender, { verification: "unavailable" })
        }
        if (secrets.value === "closed") {
          yield* note({ refusal: "signature", outcome: "closed" })
          return yield* new Unauthorized({ detail: "The organization is closed: it accepts no deliveries" })
        }
        const isUnsigned = secrets.value === "unsigned" && !isRequired
        const fault = isUnsigned ? undefined : yield* signatureFault(headers, secrets.value)
        if (fault === undefined) {
          if (!isUnsigned) yield* note({ isKnown: true })
          return yield* Effect.provideService(handler, Intake.Sender, { verification: "passed" })
        }
        yield* note({ refusal: "signature", outcome: "unsigned" })
        yield* Effect.annotateLogs(warn(fault), { organization, idempotency_key: idempotencyKey })
        return yield* new Unauthorized({ detail: `The delivery is not signed as required: ${fault}` })
      })
    )
  })
)

/**
 * Finds the sender of a large delivery before its body is read, over `IntakeSecrets`: an organization that signs, if the
 * headers may be its own. Any other may be a stranger.
 */
export const senders = Effect.map(
  IntakeSecrets,
  (intakeSecrets) => (request: HttpServerRequest.HttpServerRequest) =>
    Effect.gen(function* (): Effect.fn.Return<Sender, RequestInvalid> {
      const headers = yield* headersOf(request)
      const owner = headers["x-organization-id"]
      const isClaimed = typeof claimOf(headers, yield* currentSeconds) === "object"
      const secrets = isClaimed ? yield* Effect.orElseSucceed(intakeSecrets.of(owner), () => []) : []
      return { group: Array.isArray(secrets) && secrets.length > 0 ? "signed" : "stranger", owner }
    }).pipe(Effect.orElseSucceed((): Sender => ({ group: "stranger", owner: "" })))
)

/** Reads the delivery of the current request. */
const read = Effect.fnUntraced(function* (headers: Intake.DeliveryHeaders) {
  const { text } = yield* ReceivedBody
  return Delivery.deliveryOf(headers, yield* Delivery.decode(yield* Effect.fromResult(parse(yield* text))))
})

const keyReused = invalidAt(["header", "idempotency-key"], faults.idempotencyKeyReused)

type Sent = Pick<Delivery.Delivery, "idempotencyKey" | "taskId" | "invoicesCount" | "invoiceLinesCount">

const encode = HttpServerResponse.schemaJson(Intake.DeliveryReceipt)

const respond = (...response: Parameters<typeof encode>) => Effect.orDie(encode(...response))

/** The receipt of a delivery in the words of the contract. */
const answerOf = (
  { idempotencyKey, taskId }: Sent,
  status: Intake.DeliveryReceipt["status"],
  receipt: Pick<Intake.DeliveryReceipt, keyof Receipt>
): Intake.DeliveryReceipt => ({ ...receipt, status, task_id: taskId, idempotency_key: idempotencyKey })

/** The Retry-After of a delivery that was not stored, in seconds. `full`: the backlog is. */
const retryAfter = { unavailable: 1, full: 5 } as const

const notStored = (sent: Sent, delay: Duration.Duration, reason: keyof typeof retryAfter) =>
  Effect.map(receiptOf(sent, delay), (receipt) => {
    const answer = answerOf(sent, "error", { ...receipt, received_at: null })
    return new Intake.IntakeUnavailable({ receipt: answer, retryAfter: retryAfter[reason] })
  })

const warnFull = Throttle.make("A delivery was refused: the backlog of its organization, or of all unknown, is full")

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
    const sent = { idempotencyKey, taskId, invoicesCount: 0, invoiceLinesCount: 0 }
    const failure = yield* notStored(sent, delay, "unavailable")
    return yield* respond(failure.receipt, { status: 503, headers: errorHeaders(failure) })
  })

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
      // Raw, since the signature is over the bytes, and many items are decoded in steps.
      return handlers.handleRaw(
        "schedule",
        Effect.fnUntraced(
          function* ({ headers }) {
            const delivery = yield* read(headers)
            yield* note({ taskId: delivery.taskId })
            const { verification } = yield* Intake.Sender
            const scheduling = Effect.orElseSucceed(scheduler.schedule(delivery), () => unavailable)
            const outcome = verification === "passed" ? yield* scheduling : unavailable
            yield* note({ outcome: outcome.status })
            if (outcome.status === "key_reused") return yield* keyReused
            if ("receipt" in outcome) {
              const answer = answerOf(delivery, outcome.status, outcome.receipt)
              return yield* respond(answer, { status: outcome.status === "scheduled" ? 202 : 200 })
            }
            if (outcome.status === "full") {
              yield* note({ refusal: "limit" })
              yield* warnFull(delivery.organization)
            }
            return yield* Effect.flip(notStored(delivery, delay, outcome.status))
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
