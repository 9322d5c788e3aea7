/**
 * The requirements of every JSON body: no content encoding, the content type, no query string, the size, the encoding and
 * the syntax; and the refusal of a body that does not match the endpoint's schema.
 *
 * The order of checks is the order of this file: size and syntax come after the API key and before the fields.
 */
import type { Headers } from "effect/http"
import { HttpApiMiddleware } from "effect/http-api"
import { EncodingUnsupported, PayloadTooLarge, responseInvalid, responses, responseWithHeader } from "./Errors.ts"

/** Refuses a body that is not JSON, or too large, or not what the endpoint's schema takes. */
export class JsonBody extends HttpApiMiddleware.Service<JsonBody>()("practice-data/api/JsonBody", {
  error: [
    responseWithHeader(EncodingUnsupported, "accept-encoding", "identity"),
    ...responses(PayloadTooLarge),
    responseInvalid
  ]
}) {}

/** Bytes. A body of no more is parsed and checked at once: nothing that short takes long. */
export const smallBody = 64 * 1024

/** True if a body may be large: it is sent in chunks, without its length, or announces a large one. */
export const mayBeLarge = ({ headers }: { readonly headers: Headers.Headers }): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > smallBody
