/** Verifies the signatures of deliveries, over `IntakeSecrets`. */
import { Array, Effect, Layer, Predicate, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { Webhook } from "standardwebhooks"
import { RequestInvalid, Unauthorized } from "../Errors.ts"
import { faults } from "../Validation.ts"
import { IntakeSecrets } from "./IntakeSecrets.ts"
import { Sender, SignedDelivery } from "./SignedDelivery.ts"

const refused = new Unauthorized({ detail: "The delivery is not signed as its organization requires" })

const repeatedKey = new RequestInvalid({ detail: [{ loc: ["header", "idempotency-key"], ...faults.string }] })

/** Whether the key came in two headers, which Node joins to one value. */
const isKeyRepeated = ({ source }: HttpServerRequest.HttpServerRequest) =>
  Predicate.hasProperty(source, "headersDistinct") &&
  Predicate.hasProperty(source.headersDistinct, "idempotency-key") &&
  Array.isArray(source.headersDistinct["idempotency-key"]) &&
  source.headersDistinct["idempotency-key"].length > 1

const isSignedWith =
  (body: Uint8Array, headers: Readonly<Record<string, string | undefined>>) => (secret: Redacted.Redacted) => {
    try {
      const {
        "webhook-id": id = "",
        "webhook-timestamp": timestamp = "",
        "webhook-signature": signature = ""
      } = headers
      new Webhook(Redacted.value(secret)).verify(
        Buffer.from(body),
        { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature },
        { jsonParse: false }
      )
      return headers["idempotency-key"] === id
    } catch {
      return false
    }
  }

export const layer = Layer.effect(
  SignedDelivery,
  Effect.gen(function* () {
    const secrets = yield* IntakeSecrets
    return SignedDelivery.of(
      Effect.fnUntraced(function* (answered) {
        const request = yield* HttpServerRequest.HttpServerRequest
        if (isKeyRepeated(request)) return yield* repeatedKey
        const found = yield* Effect.option(secrets.of(request.headers["x-organization-id"] ?? ""))
        if (found._tag === "None") return yield* Effect.provideService(answered, Sender, { standing: "unknown" })
        // The body was read before, and is not read again.
        const body = new Uint8Array(yield* Effect.orDie(request.arrayBuffer))
        if (found.value.length > 0 && !found.value.some(isSignedWith(body, request.headers))) return yield* refused
        return yield* Effect.provideService(answered, Sender, { standing: "accepted" })
      })
    )
  })
)
