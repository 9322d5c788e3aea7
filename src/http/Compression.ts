/** The content encodings of responses, as `Accept-Encoding` prefers them. */
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from "node:zlib"
import { HttpBody, HttpServerResponse } from "effect/http"
import Negotiator from "negotiator"

/** Bytes. A smaller body fits into one packet. */
const minimumSize = 1400

// Levels that cost about a tenth of a millisecond for a page of 100 records and leave an eighth of it or less.
const encoders = {
  zstd: (bytes: Uint8Array) => zstdCompressSync(bytes, { params: { [constants.ZSTD_c_compressionLevel]: 3 } }),
  br: (bytes: Uint8Array) =>
    brotliCompressSync(bytes, {
      params: { [constants.BROTLI_PARAM_QUALITY]: 1, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length }
    }),
  gzip: (bytes: Uint8Array) => gzipSync(bytes, { level: 1 })
}

/** The cheapest first, for a client without a preference. */
const preferred = ["zstd", "br", "gzip"] as const
const available = [...preferred, "identity"] as const

type Response = HttpServerResponse.HttpServerResponse

/**
 * Encodes a response; small ones are left as they are. The middleware of `effect` ignores the preference of the client,
 * `identity` included, and uses another thread for each response, which costs more than these encoders.
 *
 * @param made the encoded responses of one that is always the same
 */
export const compress = (
  response: Response,
  acceptEncoding: string | undefined,
  made = new Map<string, Response>()
): Response => {
  const { body, headers } = response
  if (acceptEncoding === undefined || body._tag !== "Uint8Array" || body.contentLength < minimumSize) return response
  if (headers["content-encoding"] !== undefined) return response
  const client = new Negotiator({ headers: { "accept-encoding": acceptEncoding } })
  const encoding = client.encoding(available, { preferred })
  if (encoding === undefined || encoding === "identity") return response
  const known = made.get(encoding)
  if (known !== undefined) return known
  const bytes = HttpBody.uint8Array(encoders[encoding](body.body), body.contentType)
  const encoded = HttpServerResponse.setHeaders(HttpServerResponse.setBody(response, bytes), {
    "content-encoding": encoding,
    vary: [headers["vary"] ?? [], "accept-encoding"].flat().join(", ")
  })
  made.set(encoding, encoded)
  return encoded
}
