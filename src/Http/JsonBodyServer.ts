/** The checks of a JSON body, before and after its fields are decoded. */
import { isUtf8 } from "node:buffer"
import { ByteSize, Effect, Layer, Predicate } from "effect"
import { HttpIncomingMessage, type HttpServerError, HttpServerRequest } from "effect/http"
import { HttpApiError } from "effect/http-api"
import { type ParseError, parse } from "jsonc-parser"
import { PayloadTooLarge, RequestInvalid, type ValidationError } from "../Errors.ts"
import { type Fault, faults, validationErrors } from "../Validation.ts"
import { JsonBody } from "./JsonBody.ts"

const invalid = (loc: ValidationError["loc"], fault: Fault) => new RequestInvalid({ detail: [{ loc, ...fault }] })

const isJson = (contentType: string | undefined) =>
  contentType?.split(";", 1)[0]?.trim().toLowerCase() === "application/json"

/** Where the text stops being JSON, in characters. */
const positionOf = (text: string): number => {
  const errors: Array<ParseError> = []
  try {
    parse(text, errors, { disallowComments: true })
  } catch {
    // Nested more deeply than the parser can follow.
  }
  return errors[0]?.offset ?? text.length
}

const isOverflow = (error: HttpServerError.HttpServerError) =>
  error.reason._tag === "RequestParseError" &&
  (error.reason.reason === "BodyTooLarge" || Predicate.hasProperty(error.reason.cause, "maxBytes"))

const isRefusal = (error: unknown): error is HttpApiError.HttpApiSchemaError =>
  HttpApiError.HttpApiSchemaError.is(error) && (error.kind === "Payload" || error.kind === "Headers")

/** What is wrong with headers or a body that the endpoint's schema did not take. */
const refusal = (text: string, error: HttpApiError.HttpApiSchemaError) => {
  if (error.kind === "Headers") return new RequestInvalid({ detail: validationErrors(error.cause.issue, ["header"]) })
  const body = text.trim()
  if (body === "" || body === "null") return invalid(["body"], faults.missing)
  try {
    JSON.parse(text)
  } catch {
    return invalid(["body", positionOf(text)], faults.json)
  }
  return new RequestInvalid({ detail: validationErrors(error.cause.issue, ["body"]) })
}

/**
 * @param limits the greatest size of a body in bytes
 */
export const layer = (limits: { readonly maxBytes: number }) => {
  const tooLarge = new PayloadTooLarge({ detail: `The request body is larger than ${limits.maxBytes} bytes` })
  const readBody = (request: HttpServerRequest.HttpServerRequest) =>
    Number(request.headers["content-length"] ?? 0) > limits.maxBytes
      ? Effect.fail(tooLarge)
      : request.arrayBuffer.pipe(
          Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(limits.maxBytes)),
          Effect.mapError((error) => (isOverflow(error) ? tooLarge : invalid(["body", 0], faults.json)))
        )
  return Layer.succeed(
    JsonBody,
    JsonBody.of(
      Effect.fnUntraced(function* (answered) {
        const request = yield* HttpServerRequest.HttpServerRequest
        if (!isJson(request.headers["content-type"]))
          return yield* invalid(["header", "content-type"], faults.contentType)
        const body = new Uint8Array(yield* readBody(request))
        if (!isUtf8(body)) return yield* invalid(["body", 0], faults.json)
        return yield* Effect.mapError(answered, (error) =>
          isRefusal(error) ? refusal(new TextDecoder().decode(body), error) : error
        )
      })
    )
  )
}
