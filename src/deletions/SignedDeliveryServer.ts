/** Verifies the signatures of deliveries, over `IntakeSecrets`. */
import { Clock, Effect, Layer, type Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { Unauthorized } from "../api/Errors.ts"
import { short } from "../http/JsonText.ts"
import { runSync, runSliced } from "../http/TimeSlices.ts"
import { headersOf } from "./DeliveryHeaders.ts"
import { IntakeSecrets } from "./IntakeSecrets.ts"
import type { DeliveryHeaders } from "../api/IntakeApi.ts"
import { faultOf, isSignedWith, mismatch } from "./Signature.ts"
import { Sender, SignedDelivery } from "../api/SignedDelivery.ts"

/** Whether a body is signed with one of the secrets; pauses between them. */
function* isSignedWithAny(
  secrets: ReadonlyArray<Redacted.Redacted>,
  headers: DeliveryHeaders,
  body: Uint8Array
): Generator<void, boolean> {
  for (const secret of secrets) {
    yield
    if (isSignedWith(secret, headers, body)) return true
  }
  return false
}

/** Without what could do harm in a log. */
const loggable = (text: string) => text.replace(/[^\x20-\x7e]/g, "?")

/** Says in the log which delivery was refused, and why. */
const logRefusal = (headers: DeliveryHeaders, reason: string) =>
  Effect.logWarning("A signed delivery was refused").pipe(
    Effect.annotateLogs({
      organization: loggable(headers["x-organization-id"]),
      idempotency_key: headers["idempotency-key"],
      reason
    })
  )

export const layer = Layer.effect(
  SignedDelivery,
  Effect.gen(function* () {
    const secrets = yield* IntakeSecrets

    /** What is wrong with the signature of a request; nothing where it is good. */
    const faultIn = Effect.fnUntraced(function* (
      request: HttpServerRequest.HttpServerRequest,
      headers: DeliveryHeaders,
      found: ReadonlyArray<Redacted.Redacted>
    ) {
      const fault = faultOf(headers, Math.floor((yield* Clock.currentTimeMillis) / 1000))
      if (fault !== undefined) return fault
      // The body was read before, and is not read again.
      const body = new Uint8Array(yield* Effect.orDie(request.arrayBuffer))
      const checking = () => isSignedWithAny(found, headers, body)
      const isSigned = body.length <= short ? runSync(checking()) : yield* runSliced(checking)
      return isSigned ? undefined : mismatch
    })

    return SignedDelivery.of(
      Effect.fnUntraced(function* (answered) {
        const request = yield* HttpServerRequest.HttpServerRequest
        const headers = yield* headersOf(request)
        const found = yield* Effect.option(secrets.of(headers["x-organization-id"]))
        if (found._tag === "None") return yield* Effect.provideService(answered, Sender, { standing: "unknown" })
        const fault = found.value.length === 0 ? undefined : yield* faultIn(request, headers, found.value)
        if (fault !== undefined) {
          yield* logRefusal(headers, fault)
          return yield* new Unauthorized({
            detail: `The delivery is not signed as its organization requires: ${fault}`
          })
        }
        return yield* Effect.provideService(answered, Sender, { standing: "accepted" })
      })
    )
  })
)
