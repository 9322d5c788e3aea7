/** Reads and checks JSON bodies, before and after their fields are decoded. */
import { Effect, Layer, Result, Schema } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiError, type HttpApiEndpoint } from "effect/http-api"
import { EncodingUnsupported, PayloadTooLarge, type RequestInvalid, ServiceBusy } from "../api/Errors.ts"
import { faults, invalidAt, invalidRequest, validationErrors } from "../api/Faults.ts"
import { CurrentRequest, type Refusal } from "../observability/RequestFacts.ts"
import { JsonBody } from "../api/JsonBody.ts"
import { type Wanted, wantedBy } from "./JsonPruning.ts"
import { decoding, parse, pruning, short } from "./JsonText.ts"
import { Budget, readBody } from "./RequestBody.ts"
import { runSync, runSliced } from "./TimeSlices.ts"

const isEncoded = (contentEncoding = "") => !["", "identity"].includes(contentEncoding.trim().toLowerCase())

const isJson = (contentType: string | undefined) =>
  contentType?.split(";", 1)[0]?.trim().toLowerCase() === "application/json"

/** Refuses a request that is encoded, is not JSON, or has a query string. */
const checkRequest = Effect.fnUntraced(function* ({ headers }: HttpServerRequest.HttpServerRequest) {
  if (isEncoded(headers["content-encoding"])) return yield* new EncodingUnsupported()
  const query = yield* HttpServerRequest.ParsedSearchParams
  const found = Object.keys(query).map((name) => ({ loc: ["query", name], ...faults.extra }))
  if (!isJson(headers["content-type"])) {
    return yield* invalidRequest([{ loc: ["header", "content-type"], ...faults.contentType }, ...found])
  }
  if (found.length > 0) return yield* invalidRequest(found)
})

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

/** The request with a body that has been read, and another text in its place. */
const withText = (
  request: HttpServerRequest.HttpServerRequest,
  body: Uint8Array<ArrayBuffer>,
  text: string
): HttpServerRequest.HttpServerRequest => {
  const read = { arrayBuffer: Effect.succeed(body.buffer), text: Effect.succeed(text) }
  return new Proxy(request, {
    get: (target, name): unknown =>
      name === "arrayBuffer" || name === "text" ? read[name] : Reflect.get(target, name, target)
  })
}

const serviceBusy = Effect.succeed(
  HttpServerResponse.jsonUnsafe({ detail: new ServiceBusy().detail }, { status: 503, headers: { "retry-after": "1" } })
)

const refused = (reason: Refusal) =>
  Effect.map(CurrentRequest, (facts) => {
    if (facts !== undefined) facts.refusal = reason
  })

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
      const respond = Effect.fnUntraced(function* (
        request: HttpServerRequest.HttpServerRequest,
        body: Uint8Array<ArrayBuffer>
      ) {
        const isShort = body.length <= short
        const text = yield* Effect.fromResult(
          isShort ? runSync(decoding(body)) : yield* runSliced(() => reading(body, wanted))
        )
        const response = isShort
          ? httpEffect
          : Effect.provideService(httpEffect, HttpServerRequest.HttpServerRequest, withText(request, body, text))
        return yield* Effect.catch(response, refuse(text))
      })
      return Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        yield* checkRequest(request)
        const read = yield* Effect.result(readBody(request, { maxBytes, budget }))
        if (read._tag === "Success") return yield* respond(request, read.success)
        switch (read.failure.reason) {
          case "too large":
            yield* refused("too_large")
            return yield* tooLarge
          case "too many":
            yield* refused("load")
            return yield* busy
          case "broken":
            return yield* invalidAt(["body", 0], faults.json)
        }
      })
    })
  )
}
