/** Compresses answers for clients that ask for it. */
import { promisify } from "node:util"
import { brotliCompress, constants, gzip, zstdCompress } from "node:zlib"
import { Effect } from "effect"
import { HttpBody, HttpServerResponse } from "effect/http"
import Negotiator from "negotiator"

/** From how many bytes on it pays: a shorter answer fits into one packet as it is. */
const worthwhile = 1400

// The levels that cost about a tenth of a millisecond for a page of 100 records, and make an eighth or less of it.
const encoders = {
  zstd: promisify((bytes: Uint8Array, done: (error: Error | null, result: Buffer) => void) =>
    zstdCompress(bytes, { params: { [constants.ZSTD_c_compressionLevel]: 3 } }, done)
  ),
  br: promisify((bytes: Uint8Array, done: (error: Error | null, result: Buffer) => void) =>
    brotliCompress(
      bytes,
      {
        params: {
          [constants.BROTLI_PARAM_QUALITY]: 1,
          [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length
        }
      },
      done
    )
  ),
  gzip: promisify((bytes: Uint8Array, done: (error: Error | null, result: Buffer) => void) =>
    gzip(bytes, { level: 1 }, done)
  )
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
): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
  const { body } = response
  if (acceptEncoding === undefined || body._tag !== "Uint8Array" || body.contentLength < worthwhile) {
    return Effect.succeed(response)
  }
  const client = new Negotiator({ headers: { "accept-encoding": acceptEncoding } })
  const encoding = client.encoding(available, { preferred })
  if (encoding === undefined || encoding === "identity") return Effect.succeed(response)
  return Effect.map(
    Effect.promise(() => encoders[encoding](body.body)),
    (bytes) =>
      HttpServerResponse.setBody(response, HttpBody.uint8Array(bytes, body.contentType)).pipe(
        HttpServerResponse.setHeaders({ "content-encoding": encoding, vary: "accept-encoding" })
      )
  )
}
