/**
 * Compresses responses. The middleware of `effect` ignores the preference of the client, `identity` included, and uses
 * another thread for each response, which costs more than these encoders.
 */
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

/** Encodes a response as `Accept-Encoding` prefers; small ones are left as they are. */
export const compress =
  (acceptEncoding: string | undefined) =>
  (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse => {
    const { body } = response
    if (acceptEncoding === undefined || body._tag !== "Uint8Array" || body.contentLength < minimumSize) return response
    const client = new Negotiator({ headers: { "accept-encoding": acceptEncoding } })
    const encoding = client.encoding(available, { preferred })
    if (encoding === undefined || encoding === "identity") return response
    return HttpServerResponse.setBody(
      response,
      HttpBody.uint8Array(encoders[encoding](body.body), body.contentType)
    ).pipe(HttpServerResponse.setHeaders({ "content-encoding": encoding, vary: "accept-encoding" }))
  }
