/**
 * The requirements of every JSON body, in the order of the checks: no content encoding, the content type, no query string,
 * then, after the API key, the size and the syntax, and last the endpoint's schema.
 */
import type { Headers } from "effect/http"
import { HttpApiMiddleware } from "effect/http-api"
import { EncodingUnsupported, PayloadTooLarge, responseInvalid, responses, responseWithHeader } from "./Errors.ts"

/** Refuses a body that is encoded, too large, not JSON, or does not match the endpoint's schema. */
export class JsonBody extends HttpApiMiddleware.Service<JsonBody>()("practice-data/api/JsonBody", {
  error: [
    responseWithHeader(EncodingUnsupported, "accept-encoding", "identity"),
    ...responses(PayloadTooLarge),
    responseInvalid
  ]
}) {}

/** Bytes. A body of no more is parsed and checked at once. */
export const smallBody = 64 * 1024

/** True if a body is sent in chunks, without its length, or announces a large one. */
export const mayBeLarge = ({ headers }: { readonly headers: Headers.Headers }): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > smallBody
