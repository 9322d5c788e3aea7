/** Reads and checks JSON bodies, before and after their fields are decoded. */
import { isUtf8 } from "node:buffer"
import { Bytes, ByteSize, Context, Data, Effect, Layer, Predicate, Schema, type Scope, Stream } from "effect"
import {
  HttpClientRequest,
  HttpIncomingMessage,
  type HttpServerError,
  HttpServerRequest,
  HttpServerResponse
} from "effect/http"
import { HttpApiError, type HttpApiEndpoint } from "effect/http-api"
import { EncodingUnsupported, marked, PayloadTooLarge, RequestInvalid, ServiceBusy } from "../api/Errors.ts"
import { faults, invalidAt, invalidRequest, validationErrors } from "../api/Faults.ts"
import { note } from "../observability/RequestFacts.ts"
import { JsonBody, mayBeLarge, smallBody } from "../api/JsonBody.ts"
import type * as JsonPruning from "./JsonPruning.ts"
import { parse, wantedBy } from "./JsonPruning.ts"
import * as LargeBodies from "./LargeBodies.ts"

const pruning = LargeBodies.moduleBeside(import.meta.url, "JsonPruning")

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

/** A body was not read: it is larger than it may be; all large bodies together are; or it was not sent as valid HTTP. */
class BodyNotRead extends Data.TaggedError("BodyNotRead")<{
  readonly reason: "too large" | "too many" | "broken"
}> {}

const tooLarge = new BodyNotRead({ reason: "too large" })
const tooMany = new BodyNotRead({ reason: "too many" })
const broken = new BodyNotRead({ reason: "broken" })

/** The body of the current request, for endpoints that decode it themselves. */
export const ReceivedBody = Context.Reference<Uint8Array>("practice-data/http/RequestBody/ReceivedBody", {
  defaultValue: () => new Uint8Array()
})

const mebibyte = 1024 * 1024

/**
 * How many bytes all bodies in memory may have together, beyond what each may have to be small. Received bytes count, not
 * announced ones: a client that announces much and sends little keeps nobody out.
 */
export class Budget {
  private left: number

  constructor(bytes = 64 * mebibyte) {
    this.left = bytes
  }

  /** Takes bytes, if as many are left. */
  readonly take = (bytes: number): boolean => {
    if (bytes > this.left) return false
    this.left -= bytes
    return true
  }

  readonly give = (bytes: number): void => {
    this.left += bytes
  }
}

const isOverflow = (error: HttpServerError.HttpServerError) =>
  error.reason._tag === "RequestParseError" &&
  (error.reason.reason === "BodyTooLarge" || Predicate.hasProperty(error.reason.cause, "maxBytes"))

const readShort = (request: HttpServerRequest.HttpServerRequest, maxBytes: number) =>
  request.arrayBuffer.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(maxBytes)),
    Effect.mapBoth({
      onSuccess: (buffer) => new Uint8Array(buffer),
      onFailure: (error) => (isOverflow(error) ? tooLarge : broken)
    })
  )

const beyondFree = (length: number) => Math.max(0, length - smallBody)

const readLong = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  maxBytes: number,
  budget: Budget
) {
  const pieces: Array<Uint8Array> = []
  let length = 0
  let taken = 0
  yield* Effect.addFinalizer(() => Effect.sync(() => budget.give(taken)))
  const add = (piece: Uint8Array): Effect.Effect<void, BodyNotRead> => {
    length += piece.length
    if (length > maxBytes) return Effect.fail(tooLarge)
    const more = beyondFree(length) - taken
    if (!budget.take(more)) return Effect.fail(tooMany)
    taken += more
    pieces.push(piece)
    return Effect.void
  }
  yield* request.stream.pipe(
    Stream.mapError(() => broken),
    Stream.runForEach(add)
  )
  return Bytes.concat(pieces)
})

/**
 * Reads the body of a request. Its bytes are counted until the request is over.
 *
 * @param options.maxBytes how many bytes it may have; a body that announces more is not read
 */
export const readBody = (
  request: HttpServerRequest.HttpServerRequest,
  { maxBytes, budget }: { readonly maxBytes: number; readonly budget: Budget }
): Effect.Effect<Uint8Array<ArrayBuffer>, BodyNotRead, Scope.Scope> => {
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) return Effect.fail(tooLarge)
  return mayBeLarge(request) ? readLong(request, maxBytes, budget) : readShort(request, maxBytes)
}

/** The schema of the body of an endpoint. */
const payloadOf = (endpoint: HttpApiEndpoint.Top) => {
  const [schema] = Array.from(endpoint.payload.values()).flatMap(({ schemas }) => schemas)
  return schema ?? Schema.Unknown
}

const isRefusal = (error: unknown): error is HttpApiError.HttpApiSchemaError =>
  HttpApiError.HttpApiSchemaError.is(error) && (error.kind === "Payload" || error.kind === "Headers")

const decoder = new TextDecoder()

/** Turns an error of the endpoint's schema into a 422 that lists the faults of the headers or the body. */
const refuse =
  (body: Uint8Array) =>
  <E>(error: E): Effect.Effect<never, E | RequestInvalid> => {
    if (!isRefusal(error)) return Effect.fail(error)
    const { issue } = error.cause
    if (error.kind === "Headers") return Effect.fail(invalidRequest(validationErrors(issue, ["header"])))
    return Effect.flatMap(Effect.fromResult(parse(decoder.decode(body))), () =>
      Effect.fail(invalidRequest(validationErrors(issue, ["body"])))
    )
  }

/** The request with another body. */
const withBody = ({ headers, url }: HttpServerRequest.HttpServerRequest, body: Uint8Array) =>
  HttpServerRequest.fromClientRequest(
    HttpClientRequest.post(url).pipe(HttpClientRequest.bodyUint8Array(body, "application/json"))
  ).modify({ headers })

const serviceBusy = Effect.succeed(
  HttpServerResponse.jsonUnsafe(
    { detail: new ServiceBusy().detail },
    { status: 503, headers: { ...marked, "retry-after": "1" } }
  )
)

const notUtf8 = invalidAt(["body", 0], faults.json)

/** The budget of all large bodies of this process. */
const sharedBudget = new Budget()

export interface Options {
  /** The maximum size of a body in bytes. A larger one is a 413. */
  readonly maxBytes: number
  /** True if the endpoints decode `ReceivedBody` themselves. */
  readonly isRaw?: boolean
  /** The response while other large bodies use up the budget; by default a 503. */
  readonly busy?: Effect.Effect<
    HttpServerResponse.HttpServerResponse,
    RequestInvalid,
    HttpServerRequest.HttpServerRequest
  >
  readonly budget?: Budget
}

/** Reads bodies, and prunes large ones to what the endpoint looks at. */
export const layer = ({ maxBytes, isRaw = false, budget = sharedBudget, busy = serviceBusy }: Options) => {
  const refusal = new PayloadTooLarge({ detail: `The request body is larger than ${maxBytes} bytes` })
  const answerBusy = Effect.andThen(note({ refusal: "load" }), busy)
  const refuseUnread = ({
    reason
  }: BodyNotRead): Effect.Effect<
    HttpServerResponse.HttpServerResponse,
    PayloadTooLarge | RequestInvalid,
    HttpServerRequest.HttpServerRequest
  > => {
    switch (reason) {
      case "too large":
        return Effect.andThen(note({ refusal: "too_large" }), Effect.fail(refusal))
      case "too many":
        return answerBusy
      case "broken":
        return Effect.fail(notUtf8)
    }
  }
  return Layer.succeed(
    JsonBody,
    JsonBody.of((httpEffect, { endpoint }) => {
      const wanted = wantedBy(payloadOf(endpoint))
      const respond = (body: Uint8Array) => Effect.catch(httpEffect, refuse(body))
      const respondTo = (request: HttpServerRequest.HttpServerRequest, body: Uint8Array) =>
        Effect.provideService(respond(body), HttpServerRequest.HttpServerRequest, withBody(request, body))
      const respondPruned = (request: HttpServerRequest.HttpServerRequest, body: Uint8Array) =>
        Effect.matchEffect(LargeBodies.run<typeof JsonPruning>(pruning, { body, wanted }), {
          onFailure: () => answerBusy,
          onSuccess: (pruned) =>
            "detail" in pruned
              ? Effect.fail(new RequestInvalid(pruned))
              : respondTo(request, new TextEncoder().encode(pruned.value))
        })
      const handle = (request: HttpServerRequest.HttpServerRequest) => (body: Uint8Array) => {
        if (!isUtf8(body)) return Effect.fail(notUtf8)
        if (isRaw) return Effect.provideService(respond(body), ReceivedBody, body)
        // A body that cannot be large was read by the request, which keeps it.
        if (!mayBeLarge(request)) return respond(body)
        return body.length <= smallBody ? respondTo(request, body) : respondPruned(request, body)
      }
      return Effect.contextWith(
        (context: Context.Context<HttpServerRequest.HttpServerRequest | HttpServerRequest.ParsedSearchParams>) => {
          const request = Context.get(context, HttpServerRequest.HttpServerRequest)
          const query = Context.get(context, HttpServerRequest.ParsedSearchParams)
          return Effect.flatMapEager(checkRequest(request, query), () =>
            Effect.matchEffect(readBody(request, { maxBytes, budget }), {
              onSuccess: handle(request),
              onFailure: refuseUnread
            })
          )
        }
      )
    })
  )
}
