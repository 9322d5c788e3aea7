/** Reads and checks JSON bodies, before and after their fields are decoded. */
import { isUtf8 } from "node:buffer"
import { IncomingMessage } from "node:http"
import { Bytes, Context, Effect, Layer, Schema, type Scope, Stream } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import { HttpApiError } from "effect/http-api"
import { EncodingUnsupported, errorResponse, PayloadTooLarge, RequestInvalid, ServiceBusy } from "../api/Errors.ts"
import { faults, invalidAt, invalidRequest, validationErrors } from "../api/Faults.ts"
import { note } from "../observability/RequestFacts.ts"
import { JsonBody, mayBeLarge, smallBody } from "../api/Authorization.ts"
import type * as JsonPruning from "./JsonPruning.ts"
import { parse, wantedBy } from "./JsonPruning.ts"
import * as LargeBodies from "./LargeBodies.ts"
import { moduleBeside } from "../process/Package.ts"

type Request = HttpServerRequest.HttpServerRequest

const pruning = moduleBeside(import.meta.url, "JsonPruning")

const isEncoded = (contentEncoding = "") =>
  contentEncoding !== "" && !["", "identity"].includes(contentEncoding.trim().toLowerCase())

const isJson = (contentType: string | undefined) =>
  contentType === "application/json" || contentType?.split(";", 1)[0]?.trim().toLowerCase() === "application/json"

/** Refuses a request that is encoded, is not JSON, or has a query string. */
const checkRequest = (
  { headers }: Request,
  query: HttpServerRequest.ParsedSearchParams["Service"]
): Effect.Effect<void, EncodingUnsupported | RequestInvalid> => {
  if (isEncoded(headers["content-encoding"])) return Effect.fail(new EncodingUnsupported())
  const found = Object.keys(query).map((name) => ({ loc: ["query", name], ...faults.extra }))
  if (!isJson(headers["content-type"])) {
    return Effect.fail(invalidRequest([{ loc: ["header", "content-type"], ...faults.contentType }, ...found]))
  }
  return found.length > 0 ? Effect.fail(invalidRequest(found)) : Effect.void
}

/** The body of the current request, for endpoints that decode it themselves. */
export const ReceivedBody = Context.Reference<Uint8Array>("practice-data/http/JsonBodyServer/ReceivedBody", {
  defaultValue: () => new Uint8Array()
})

/**
 * The bytes left for all bodies in memory, beyond the first 64 KiB of each. Received bytes count, not announced ones: a
 * client that announces much and sends little takes nothing.
 */
export interface Budget {
  left: number
}

const notUtf8 = invalidAt(["body", 0], faults.json)

type NotRead = PayloadTooLarge | RequestInvalid | LargeBodies.LargeBodiesBusy

const tooLarge = (maxBytes: number) =>
  Effect.andThen(
    note({ refusal: "too_large" }),
    Effect.fail(new PayloadTooLarge({ detail: `The request body is larger than ${maxBytes} bytes` }))
  )

/**
 * Reads a body by Node's events, where nobody has read from it and its client does not wait for a 100. The
 * `arrayBuffer` of effect costs 4 % of a single record's CPU time, and a stream a sixth.
 */
const readEvents = (source: IncomingMessage) =>
  Effect.callback<Uint8Array<ArrayBuffer>, NotRead>((resume) => {
    if (source.destroyed) return resume(Effect.fail(notUtf8))
    const pieces: Array<Buffer<ArrayBuffer>> = []
    source
      .on("data", (piece: Buffer<ArrayBuffer>) => pieces.push(piece))
      .on("end", () => {
        const [first] = pieces
        resume(Effect.succeed(first !== undefined && pieces.length === 1 ? first : Buffer.concat(pieces)))
      })
      .on("close", () => resume(Effect.fail(notUtf8)))
  })

const readStream = Effect.fnUntraced(function* (request: Request, maxBytes: number, budget: Budget) {
  const pieces: Array<Uint8Array> = []
  let length = 0
  let taken = 0
  yield* Effect.addFinalizer(() => Effect.sync(() => void (budget.left += taken)))
  const add = (piece: Uint8Array): Effect.Effect<void, NotRead> => {
    length += piece.length
    if (length > maxBytes) return tooLarge(maxBytes)
    const more = Math.max(0, length - smallBody) - taken
    if (more > budget.left) return Effect.fail(LargeBodies.busy)
    budget.left -= more
    taken += more
    pieces.push(piece)
    return Effect.void
  }
  yield* request.stream.pipe(
    Stream.mapError(() => notUtf8),
    Stream.runForEach(add)
  )
  return Bytes.concat(pieces)
})

/** Reads the body of a request. Its bytes count until the request is over. One that announces too many is not read. */
export const readBody = (
  request: Request,
  { maxBytes, budget }: { readonly maxBytes: number; readonly budget: Budget }
): Effect.Effect<Uint8Array<ArrayBuffer>, NotRead, Scope.Scope> => {
  const { headers, source } = request
  if (Number(headers["content-length"] ?? 0) > maxBytes) return tooLarge(maxBytes)
  const isPlain = source instanceof IncomingMessage && !source.readableDidRead && headers["expect"] === undefined
  return isPlain && !mayBeLarge(request) ? readEvents(source) : readStream(request, maxBytes, budget)
}

/** A request whose text was read already, as its handlers see it. */
const withText = (request: Request, text: string) => {
  const read = Effect.succeed(text)
  return new Proxy(request, { get: (target, name): unknown => (name === "text" ? read : Reflect.get(target, name)) })
}

const decoder = new TextDecoder()

/** Turns an error of the endpoint's schema into a 422 that lists the faults of the headers or the body. */
const refuse =
  (text: string) =>
  <E>(error: E): Effect.Effect<never, E | RequestInvalid> => {
    if (!HttpApiError.HttpApiSchemaError.is(error)) return Effect.fail(error)
    const { cause, kind } = error
    if (kind === "Headers") return Effect.fail(invalidRequest(validationErrors(cause.issue, ["header"])))
    if (kind !== "Payload") return Effect.fail(error)
    return Effect.flatMap(Effect.fromResult(parse(text)), () =>
      Effect.fail(invalidRequest(validationErrors(cause.issue, ["body"])))
    )
  }

const serviceBusy = Effect.succeed(errorResponse(new ServiceBusy()))

const sharedBudget: Budget = { left: 64 * 1024 * 1024 }

interface Options {
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
  const answerBusy = Effect.andThen(note({ refusal: "load" }), busy)
  return Layer.succeed(
    JsonBody,
    JsonBody.of((httpEffect, { endpoint }) => {
      const [payload = Schema.Unknown] = Array.from(endpoint.payload.values()).flatMap(({ schemas }) => schemas)
      const wanted = wantedBy(payload)
      const respond = (text: string, request: Request) =>
        Effect.provideService(
          Effect.catch(httpEffect, refuse(text)),
          HttpServerRequest.HttpServerRequest,
          withText(request, text)
        )
      const handle = (request: Request) => (body: Uint8Array) => {
        if (!isUtf8(body)) return Effect.fail(notUtf8)
        if (isRaw) return Effect.provideService(Effect.catch(httpEffect, refuse("")), ReceivedBody, body)
        if (body.length <= smallBody) return respond(decoder.decode(body), request)
        return Effect.matchEffect(LargeBodies.run<typeof JsonPruning>(pruning, { body, wanted }), {
          onFailure: () => answerBusy,
          onSuccess: (pruned) =>
            "detail" in pruned ? Effect.fail(new RequestInvalid(pruned)) : respond(pruned.value, request)
        })
      }
      return Effect.contextWith(
        (context: Context.Context<HttpServerRequest.HttpServerRequest | HttpServerRequest.ParsedSearchParams>) => {
          const request = Context.get(context, HttpServerRequest.HttpServerRequest)
          const query = Context.get(context, HttpServerRequest.ParsedSearchParams)
          return Effect.flatMapEager(checkRequest(request, query), () =>
            Effect.matchEffect(readBody(request, { maxBytes, budget }), {
              onSuccess: handle(request),
              onFailure: (error) => (error._tag === "LargeBodiesBusy" ? answerBusy : Effect.fail(error))
            })
          )
        }
      )
    })
  )
}
