/** Reads a delivery from a request. */
import { IncomingMessage } from "node:http"
import { Effect, Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import { RequestInvalid } from "../api/Errors.ts"
import { invalidRequest, validationErrors } from "../api/Faults.ts"
import { DeliveryHeaders } from "../api/IntakeApi.ts"
import { smallBody } from "../api/JsonBody.ts"
import * as LargeBodies from "../http/LargeBodies.ts"
import { ReceivedBody } from "../http/JsonBodyServer.ts"
import { moduleBeside } from "../process/Package.ts"
import * as Delivery from "./Delivery.ts"

const identifying = ["idempotency-key", "x-organization-id"] as const satisfies ReadonlyArray<keyof Delivery.Identity>

/** The values of identifying headers that came more than once, which Node joins to one. */
const repeated = ({ source }: HttpServerRequest.HttpServerRequest) =>
  source instanceof IncomingMessage
    ? identifying.flatMap((name) => {
        const values = source.headersDistinct[name] ?? []
        return values.length > 1 ? [[name, values] as const] : []
      })
    : []

const decodeHeaders = Schema.decodeUnknownEffect(DeliveryHeaders, { errors: "all" })

/** The headers, or all their faults. A repeated header is an array, which is not a string. */
export const headersOf = (
  request: HttpServerRequest.HttpServerRequest
): Effect.Effect<DeliveryHeaders, RequestInvalid> =>
  Effect.mapError(decodeHeaders({ ...request.headers, ...Object.fromEntries(repeated(request)) }), ({ issue }) =>
    invalidRequest(validationErrors(issue, ["header"]))
  )

const deliveries = moduleBeside(import.meta.url, "Delivery")

/** The delivery of the current request, or the faults of its body. */
export const read = Effect.fnUntraced(function* (headers: DeliveryHeaders) {
  const body = yield* ReceivedBody
  const input = { body, headers }
  const outcome =
    body.length <= smallBody ? Delivery.job(input) : yield* LargeBodies.run<typeof Delivery>(deliveries, input)
  return "detail" in outcome ? yield* new RequestInvalid(outcome) : outcome.value
})
