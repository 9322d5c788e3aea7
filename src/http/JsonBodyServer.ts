/** Reads and checks JSON bodies, before and after their fields are decoded. */
import { Context, Effect, Layer, Result, Schema } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiError, type HttpApiEndpoint } from "effect/http-api"
import { EncodingUnsupported, marked, PayloadTooLarge, type RequestInvalid, ServiceBusy } from "../api/Errors.ts"
import { faults, invalidAt, invalidRequest, validationErrors } from "../api/Faults.ts"
import { note } from "../observability/RequestFacts.ts"
import { JsonBody } from "../api/JsonBody.ts"
import { type Wanted, wantedBy } from "./JsonPruning.ts"
import { decode, decoding, parse, pruning, short } from "./JsonText.ts"
import { type BodyNotRead, Budget, readBody } from "./RequestBody.ts"
import { runSliced } from "./TimeSlices.ts"

const isEncoded = (contentEncoding = "") =>
  contentEncoding !== "" && !["", "identity"].includes(contentEncoding.trim().toLowerCase())

const isJson = (contentType: string | undefined) =>
  contentType === "application/json" || contentType?.split(";", 1)[0]?.trim().toLowerCase() === "application/json"

/** Refuses a request that is encoded, is not JSON, or has a query string. */
const checkRequest = (
  { headers }: HttpServerRequest.HttpServerRequest,
  query: HttpServerRequest.ParsedSearchParams["Service"]
): Effect.Effect<void, EncodingUnsupported | RequestInvalid> => {
  if (isEncoded(headers["content-encoding"])) return Effect.fail(new EncodingUnsupported())
  const found = Object.keys(query).map((name) => ({ loc: ["query", name], ...faults.extra }))
  if (!isJson(headers["content-type"])) {
    return Effect.fail(invalidRequest([{ loc: ["header", "content-type"], ...faults.contentType }, ...found]))
  }
  return found.length > 0 ? Effect.fail(invalidRequest(found)) : Effect.void
}

/** The schema of the body of an endpoint. */
const payloadOf = (endpoint: HttpApiEndpoint.Top) => {
  const [schema] = Array.from(endpoint.payload.values()).flatMap(({ schemas }) => schemas)
  return schema ?? Schema.Unknown
}

const isRefusal = (error: unknown): error is HttpApiError.HttpApiSchemaError =>
  HttpApiError.HttpApiSchemaError.is(error) && (error.kind === "Payload" || error.kind === "Headers")

/** Turns an error of the endpoint's schema into a 422 that lists the faults of the headers or the body. */
const refuse =
  (text: string) =>
  <E>(error: E): Effect.Effect<never, E | RequestInvalid> => {
    if (!isRefusal(error)) return Effect.fail(error)
    const { issue } = error.cause
    return error.kind === "Headers"
      ? Effect.fail(invalidRequest(validationErrors(issue, ["header"])))
      : Effect.fail(
          Result.match(parse(text), {
            onFailure: (notParsed) => notParsed,
            onSuccess: () => invalidRequest(validationErrors(issue, ["body"]))
          })
        )
  }

/** Lets whoever reads the body of a request have what was read. */
const setBody = (request: HttpServerRequest.HttpServerRequest, body: Uint8Array<ArrayBuffer>) => {
  Object.defineProperty(request, "arrayBuffer", { value: Effect.sync(() => new Uint8Array(body).buffer) })
}

/** Lets whoever reads the text of a request have this one. */
const setText = (request: HttpServerRequest.HttpServerRequest, text: string) => {
  Object.defineProperty(request, "text", { value: Effect.succeed(text) })
}

const serviceBusy = Effect.succeed(
  HttpServerResponse.jsonUnsafe(
    { detail: new ServiceBusy().detail },
    { status: 503, headers: { ...marked, "retry-after": "1" } }
  )
)

/** What all large bodies of this process share. */
const sharedBudget = new Budget()

/** How bodies are read. */
export interface Options {
  /** How many bytes a body may have. A larger one is a 413. */
  readonly maxBytes: number
  /** Whether the endpoints decode the text themselves: then it is not pruned. */
  readonly isRaw?: boolean
  /** The response while other large bodies use up the budget; by default a 503. */
  readonly busy?: Effect.Effect<
    HttpServerResponse.HttpServerResponse,
    RequestInvalid,
    HttpServerRequest.HttpServerRequest
  >
  /** What large bodies share; by default one budget for the process. */
  readonly budget?: Budget
}

/** Reads bodies, and prunes long ones to what the endpoint looks at. */
export const layer = (options: Options) => {
  const { maxBytes, isRaw = false, budget = sharedBudget, busy = serviceBusy } = options
  const tooLarge = new PayloadTooLarge({ detail: `The request body is larger than ${maxBytes} bytes` })
  function* reading(body: Uint8Array, wanted: Wanted): Generator<void, Result.Result<string, RequestInvalid>> {
    const text = yield* decoding(body)
    return isRaw || Result.isFailure(text) ? text : yield* pruning(text.success, wanted)
  }
  return Layer.succeed(
    JsonBody,
    JsonBody.of((httpEffect, { endpoint }) => {
      const wanted = wantedBy(payloadOf(endpoint))
      const respond =
        (request: HttpServerRequest.HttpServerRequest, body: Uint8Array<ArrayBuffer>) =>
        (decoded: Result.Result<string, RequestInvalid>) => {
          if (Result.isFailure(decoded)) return Effect.fail(decoded.failure)
          if (isRaw) setBody(request, body)
          setText(request, decoded.success)
          return Effect.catch(httpEffect, refuse(decoded.success))
        }
      const refuseUnread = ({
        reason
      }: BodyNotRead): Effect.Effect<
        HttpServerResponse.HttpServerResponse,
        PayloadTooLarge | RequestInvalid,
        HttpServerRequest.HttpServerRequest
      > => {
        switch (reason) {
          case "too large":
            return Effect.andThen(note({ refusal: "too_large" }), Effect.fail(tooLarge))
          case "too many":
            return Effect.andThen(note({ refusal: "load" }), busy)
          case "broken":
            return Effect.fail(invalidAt(["body", 0], faults.json))
        }
      }
      return Effect.contextWith(
        (context: Context.Context<HttpServerRequest.HttpServerRequest | HttpServerRequest.ParsedSearchParams>) => {
          const request = Context.get(context, HttpServerRequest.HttpServerRequest)
          const query = Context.get(context, HttpServerRequest.ParsedSearchParams)
          return Effect.flatMapEager(checkRequest(request, query), () =>
            Effect.matchEffect(readBody(request, { maxBytes, budget }), {
              onSuccess: (body) =>
                body.length <= short
                  ? respond(request, body)(decode(body))
                  : Effect.flatMap(
                      runSliced(() => reading(body, wanted)),
                      respond(request, body)
                    ),
              onFailure: refuseUnread
            })
          )
        }
      )
    })
  )
}
