/** Verifies the signatures of deliveries (Standard Webhooks) with the secrets of their organizations. */
import { createHmac, timingSafeEqual } from "node:crypto"
import { Clock, Context, Effect, Layer, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { Unauthorized } from "../api/Errors.ts"
import type { DeliveryHeaders } from "../api/IntakeApi.ts"
import { Sender, SignedDelivery } from "../api/SignedDelivery.ts"
import { ReceivedBody } from "../http/RequestBody.ts"
import { note } from "../observability/RequestFacts.ts"
import * as Throttle from "../database/Throttle.ts"
import { headersOf } from "./DeliveryRequest.ts"
import { IntakeSecrets } from "./IntakeSecrets.ts"

/** True if an organization without a secret is refused. */
export const SignaturesRequired = Context.Reference<boolean>("practice-data/deletions/SignaturesRequired", {
  defaultValue: () => false
})

/** How far the time of a signature may be from now, in seconds. */
const tolerance = 300

/** What is wrong with the headers whatever the secret. `now`: seconds since 1970. */
const headerFault = (headers: DeliveryHeaders, now: number): string | undefined => {
  const { "webhook-id": id = "", "webhook-timestamp": timestamp = "", "webhook-signature": signature = "" } = headers
  if (id === "") return "webhook-id is missing"
  if (id !== headers["idempotency-key"]) return "webhook-id is not the Idempotency-Key"
  if (timestamp === "") return "webhook-timestamp is missing"
  const signedAt = parseInt(timestamp, 10)
  if (Number.isNaN(signedAt)) return "webhook-timestamp is not a number"
  if (signedAt < now - tolerance) return `webhook-timestamp is too old: more than ${tolerance} seconds ago`
  if (signedAt > now + tolerance) return `webhook-timestamp is too new: more than ${tolerance} seconds ahead`
  if (signature.trim() === "") return "webhook-signature is missing"
  if (!signature.split(" ").some((each) => /^v1,./.test(each))) {
    return "webhook-signature is malformed: it has no signature of version v1"
  }
  return undefined
}

/** Whether a body is signed with a secret. A malformed secret signs nothing. */
const isSignedWith = (secret: Redacted.Redacted, headers: DeliveryHeaders, body: Uint8Array): boolean => {
  const { "webhook-id": id = "", "webhook-timestamp": timestamp = "", "webhook-signature": signature = "" } = headers
  const text = Redacted.value(secret).replace(/^whsec_/, "")
  const key = Buffer.from(text, "base64")
  if (key.length === 0 || key.toString("base64") !== text) return false
  const hmac = createHmac("sha256", key)
    .update(`${id}.${parseInt(timestamp, 10)}.`)
    .update(body)
  const expected = Buffer.from(`v1,${hmac.digest("base64")}`)
  return signature.split(" ").some((each) => {
    const given = Buffer.from(each)
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
}

/** What is wrong with the signature of a request; nothing where it is good. */
const signatureFault = Effect.fnUntraced(function* (
  headers: DeliveryHeaders,
  secrets: ReadonlyArray<Redacted.Redacted>
) {
  const fault = headerFault(headers, Math.floor((yield* Clock.currentTimeMillis) / 1000))
  if (fault !== undefined) return fault
  const body = yield* ReceivedBody
  for (const secret of secrets) {
    if (isSignedWith(secret, headers, body)) return undefined
    // A large body takes some milliseconds for each secret.
    yield* Effect.yieldNow
  }
  return "webhook-signature does not match"
})

// An organization whose secret is wrong, or a stranger, sends on and on.
const warn = Throttle.make("A signed delivery was refused", 50)

/** Without the characters that could forge a log line. */
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
        yield* note({ organization: headers["x-organization-id"], idempotencyKey: headers["idempotency-key"] })
        const secrets = yield* Effect.option(intakeSecrets.of(headers["x-organization-id"]))
        if (secrets._tag === "None") {
          return yield* Effect.provideService(handler, Sender, { verification: "unavailable" })
        }
        const unsigned = isRequired ? "the organization has no signing secret" : undefined
        const fault = secrets.value.length === 0 ? unsigned : yield* signatureFault(headers, secrets.value)
        if (fault === undefined) return yield* Effect.provideService(handler, Sender, { verification: "passed" })
        yield* note({ refusal: "signature", outcome: "unsigned" })
        yield* Effect.annotateLogs(warn(fault), {
          organization: loggable(headers["x-organization-id"]),
          idempotency_key: headers["idempotency-key"]
        })
        return yield* new Unauthorized({
          detail: `The delivery is not signed as required: ${fault}`
        })
      })
    )
  })
)
