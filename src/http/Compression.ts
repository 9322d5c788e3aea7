/** Compresses answers for clients that ask for it. */
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from "node:zlib"
import { HttpBody, HttpServerResponse } from "effect/http"
import Negotiator from "negotiator"

/** From how many bytes on it pays: a shorter answer fits into one packet as it is. */
const worthwhile = 1400

// At levels that cost about a tenth of a millisecond for a page of 100 records and make an eighth or less of it. That is
// less than handing the work to another thread and taking it back.
const encoders = {
  zstd: (bytes: Uint8Array) => zstdCompressSync(bytes, { params: { [constants.ZSTD_c_compressionLevel]: 3 } }),
  br: (bytes: Uint8Array) =>
    brotliCompressSync(bytes, {
      params: { [constants.BROTLI_PARAM_QUALITY]: 1, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length }
    }),
  gzip: (bytes: Uint8Array) => gzipSync(bytes, { level: 1 })
}

// The cheapest first, for a client that takes several alike.
const preferred = ["zstd", "br", "gzip"] as const
const available = [...preferred, "identity"] as const

/**
 * The answer in the encoding that `Accept-Encoding` prefers, of zstd, br and gzip; as it is where the client asks for
 * none of them or it would not pay.
 */
export const compress = (
  response: HttpServerResponse.HttpServerResponse,
  acceptEncoding: string | undefined
): HttpServerResponse.HttpServerResponse => {
  const { body } = response
  if (acceptEncoding === undefined || body._tag !== "Uint8Array" || body.contentLength < worthwhile) return response
  const client = new Negotiator({ headers: { "accept-encoding": acceptEncoding } })
  const encoding = client.encoding(available, { preferred })
  if (encoding === undefined || encoding === "identity") return response
  return HttpServerResponse.setBody(
    response,
    HttpBody.uint8Array(encoders[encoding](body.body), body.contentType)
  ).pipe(HttpServerResponse.setHeaders({ "content-encoding": encoding, vary: "accept-encoding" }))
}
