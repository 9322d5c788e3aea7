/** Reads the headers of a delivery. */
import { Effect, Predicate, Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { RequestInvalid } from "../api/Errors.ts"
import { invalidRequest, validationErrors } from "../api/Faults.ts"
import { DeliveryHeaders } from "../api/IntakeApi.ts"

/** The headers that say what a delivery is: another one of the same name would be another delivery. */
const single = ["idempotency-key", "x-organization-id"] as const

/** All values of a header, which Node joins to one. Nothing where it is not known how often it came. */
const valuesOf = (name: string, { source }: HttpServerRequest.HttpServerRequest): ReadonlyArray<unknown> => {
  if (!Predicate.hasProperty(source, "headersDistinct")) return []
  const { headersDistinct } = source
  if (!Predicate.hasProperty(headersDistinct, name)) return []
  return Array.isArray(headersDistinct[name]) ? headersDistinct[name] : []
}

const repeated = (request: HttpServerRequest.HttpServerRequest) =>
  single.flatMap((name) => {
    const values = valuesOf(name, request)
    return values.length > 1 ? [[name, values] as const] : []
  })

const decode = Schema.decodeUnknownEffect(DeliveryHeaders, { errors: "all" })

/** The headers, or all that is wrong with them. One that is repeated is no text. */
export const headersOf = (
  request: HttpServerRequest.HttpServerRequest
): Effect.Effect<DeliveryHeaders, RequestInvalid> =>
  Effect.mapError(decode({ ...request.headers, ...Object.fromEntries(repeated(request)) }), ({ issue }) =>
    invalidRequest(validationErrors(issue, ["header"]))
  )
