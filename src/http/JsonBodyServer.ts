/** Reads and checks JSON bodies, before and after their fields are decoded. */
import { ByteSize, Effect, Layer, Predicate, Result } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiError } from "effect/http-api"
import { JsonBody } from "../api/Authorization.ts"
import { EncodingUnsupported, maximumBody, PayloadTooLarge, type RequestInvalid } from "../api/Errors.ts"
import { faults, invalidAt, invalidRequest, validationErrors } from "../api/Faults.ts"
import { note } from "../observability/RequestFacts.ts"

type Request = HttpServerRequest.HttpServerRequest

const isEncoded = (contentEncoding = "") => !["", "identity"].includes(contentEncoding.trim().toLowerCase())

export const isJson = (contentType: string | undefined) =>
  contentType === "application/json" || contentType?.split(";", 1)[0]?.trim().toLowerCase() === "application/json"

/** Refuses a request that is encoded, is not JSON, or has a query string. */
const checkRequest = (
  { headers }: Request,
  query: HttpServerRequest.ParsedSearchParams["Service"]
): Effect.Effect<void, EncodingUnsupported | RequestInvalid> => {
  if (isEncoded(headers["content-encoding"])) return Effect.fail(new EncodingUnsupported())
  const extras = Object.keys(query).map((name) => ({ loc: ["query", name], ...faults.extra }))
  if (!isJson(headers["content-type"])) {
    return Effect.fail(invalidRequest([{ loc: ["header", "content-type"], ...faults.contentType }, ...extras]))
  }
  return extras.length > 0 ? Effect.fail(invalidRequest(extras)) : Effect.void
}

/** The most levels of lists and objects in each other. */
const deepest = 16

/** The number of names in the objects of a value; infinite if it is nested too deep. */
const countNames = (value: unknown, level = 0): number => {
  if (!Predicate.isObjectOrArray(value)) return 0
  if (level === deepest) return Infinity
  const isList = Array.isArray(value)
  const values: ReadonlyArray<unknown> = isList ? value : Object.values(value)
  let names = isList ? 0 : values.length
  for (const each of values) names += countNames(each, level + 1)
  return names
}

const strings = /"[^"\\]*(?:\\.[^"\\]*)*"/g
const countColons = (text: string) => text.split(":").length - 1

/** True if a name stands twice in an object of a text: `JSON.parse` silently drops the first. */
const hasRepeated = (text: string, names: number): boolean =>
  countColons(text) > names && countColons(text.replace(strings, "")) > names

const invalidJson = (at = 0) => invalidAt(["body", at], faults.json)
const missing = invalidAt(["body"], faults.missing)

/** The position that ends some messages of V8. Others quote the text, which may hold anything. */
const position = / JSON at position (\d+) \(line \d+ column \d+\)$/

const decoder = new TextDecoder("utf-8", { fatal: true })

/** The value of a body. */
export const parse = (body: Uint8Array): Result.Result<unknown, RequestInvalid> => {
  try {
    const text = decoder.decode(body)
    if (text.trim() === "") return Result.fail(missing)
    const value: unknown = JSON.parse(text)
    if (value === null) return Result.fail(missing)
    const names = countNames(value)
    return names === Infinity || hasRepeated(text, names) ? Result.fail(invalidJson()) : Result.succeed(value)
  } catch (error) {
    return Result.fail(invalidJson(Number(position.exec(String(error))?.[1] ?? 0)))
  }
}

// An error that is made takes a stack trace.
const tooLarge = Effect.suspend(() =>
  Effect.andThen(note({ refusal: "too_large" }), Effect.fail(new PayloadTooLarge()))
)

/** Reads the body of a request. A connection that breaks off interrupts it. */
const readBody = (request: Request): Effect.Effect<Uint8Array, PayloadTooLarge> => {
  if (Number(request.headers["content-length"] ?? 0) > maximumBody) return tooLarge
  return request.arrayBuffer.pipe(
    Effect.provideService(HttpServerRequest.MaxBodySize, ByteSize.bytes(maximumBody)),
    Effect.map((body) => new Uint8Array(body)),
    Effect.catch(({ reason }) =>
      reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge" ? tooLarge : Effect.interrupt
    )
  )
}

/** The body of the current request, which was read before its endpoint was reached. */
export const receivedBody: Effect.Effect<Uint8Array, never, Request> = Effect.flatMap(
  HttpServerRequest.HttpServerRequest,
  ({ arrayBuffer }) => Effect.map(Effect.orDie(arrayBuffer), (body) => new Uint8Array(body))
)

/** Turns an error of the endpoint's schema into a 422 that lists the faults of the headers or of the body. */
const refusing = <A, E, R>(handled: Effect.Effect<A, E, R>): Effect.Effect<A, E | RequestInvalid, R> =>
  Effect.catch(handled, (error): Effect.Effect<never, E | RequestInvalid> => {
    if (!HttpApiError.HttpApiSchemaError.is(error)) return Effect.fail(error)
    const { cause, kind } = error
    if (kind !== "Headers" && kind !== "Payload") return Effect.fail(error)
    return Effect.fail(invalidRequest(validationErrors(cause.issue, [kind === "Headers" ? "header" : "body"])))
  })

const checking = (check: (body: Uint8Array) => Result.Result<unknown, RequestInvalid>) =>
  JsonBody.of((httpEffect) =>
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      yield* checkRequest(request, yield* HttpServerRequest.ParsedSearchParams)
      yield* Effect.fromResult(check(yield* readBody(request)))
      return yield* refusing(httpEffect)
    })
  )

/** Reads and parses the bodies of requests, which keep them for their endpoints. */
export const layer = Layer.succeed(JsonBody, checking(parse))

/** Reads the bodies of requests whose endpoints parse them. */
export const layerRaw = Layer.succeed(
  JsonBody,
  checking(() => Result.void)
)
