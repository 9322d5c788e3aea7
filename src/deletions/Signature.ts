/** Checks the headers of deliveries: their form, and their signature (Standard Webhooks). */
import { createHmac, timingSafeEqual } from "node:crypto"
import { IncomingMessage } from "node:http"
import { Clock, Context, Effect, Layer, Record, Redacted, Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import { Unauthorized } from "../api/Errors.ts"
import { invalidRequest, validationErrors } from "../api/Faults.ts"
import { DeliveryHeaders, Sender, SignedDelivery } from "../api/IntakeApi.ts"
import * as Throttle from "../observability/Throttle.ts"
import { ReceivedBody } from "../http/JsonBodyServer.ts"
import { note } from "../observability/RequestFacts.ts"
import { IntakeSecrets } from "./IntakeSecrets.ts"

/** True if an organization without a secret is refused. */
export const SignaturesRequired = Context.Reference<boolean>("practice-data/deletions/SignaturesRequired", {
  defaultValue: () => false
})

const decodeHeaders = Schema.decodeUnknownEffect(DeliveryHeaders, { errors: "all" })

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

/** The reason why the signature of a request is refused; undefined where it is good. */
const signatureFault = Effect.fnUntraced(function* (
  headers: DeliveryHeaders,
  secrets: ReadonlyArray<Redacted.Redacted>
) {
  const { "webhook-id": id = "", "webhook-timestamp": timestamp = "", "webhook-signature": signature = "" } = headers
  if (id === "") return "webhook-id is missing"
  if (id !== headers["idempotency-key"]) return "webhook-id is not the Idempotency-Key"
  if (timestamp === "") return "webhook-timestamp is missing"
  const now = Math.floor((yield* Clock.currentTimeMillis) / 1000)
  const signedAt = parseInt(timestamp, 10)
  if (Number.isNaN(signedAt)) return "webhook-timestamp is not a number"
  if (signedAt < now - tolerance) return `webhook-timestamp is too old: more than ${tolerance} seconds ago`
  if (signedAt > now + tolerance) return `webhook-timestamp is too new: more than ${tolerance} seconds ahead`
  if (signature.trim() === "") return "webhook-signature is missing"
  const given = signature.split(" ").filter((each) => /^v1,./.test(each))
  if (given.length === 0) return "webhook-signature is malformed: it has no signature of version v1"

  const body = yield* ReceivedBody
  for (const secret of secrets) {
    const expected = Buffer.from(`v1,${macOf(secret, `${id}.${signedAt}.`, body) ?? ""}`)
    const isExpected = (text: Buffer) => text.length === expected.length && timingSafeEqual(text, expected)
    if (given.some((each) => isExpected(Buffer.from(each)))) return undefined
    // A large body takes some milliseconds for each secret.
    yield* Effect.yieldNow
  }
  return "webhook-signature does not match"
})

// An organization whose secret is wrong, or a stranger, sends on and on.
const warn = Throttle.make("A signed delivery was refused", 50)

/** Replaces the characters that could forge a log line. */
export const loggable = (text: string) => text.replace(/[^\x20-\x7e]/g, "?")

/** The middleware, over `IntakeSecrets`. */
export const layer = Layer.effect(
  SignedDelivery,
  Effect.gen(function* () {
    const intakeSecrets = yield* IntakeSecrets
    const isRequired = yield* SignaturesRequired
    return SignedDelivery.of(
      Effect.fnUntraced(function* (handler) {
        const request = yield* HttpServerRequest.HttpServerRequest
        const headers = yield* headersOf(request)
        const organization = headers["x-organization-id"]
        const idempotencyKey = headers["idempotency-key"]
        yield* note({ organization, idempotencyKey })
        const secrets = yield* Effect.option(intakeSecrets.of(organization))
        if (secrets._tag === "None") {
          return yield* Effect.provideService(handler, Sender, { verification: "unavailable" })
        }
        const unsigned = isRequired ? "the organization has no signing secret" : undefined
        const fault = secrets.value.length === 0 ? unsigned : yield* signatureFault(headers, secrets.value)
        if (fault === undefined) return yield* Effect.provideService(handler, Sender, { verification: "passed" })
        yield* note({ refusal: "signature", outcome: "unsigned" })
        yield* Effect.annotateLogs(warn(fault), {
          organization: loggable(organization),
          idempotency_key: idempotencyKey
        })
        return yield* new Unauthorized({ detail: `The delivery is not signed as required: ${fault}` })
      })
    )
  })
)
