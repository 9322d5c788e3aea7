/** The content encodings of responses: zstd or gzip, where `Accept-Encoding` names it. */
import { constants, gzipSync, zstdCompressSync } from "node:zlib"
import { HttpBody, HttpServerResponse } from "effect/http"

/** Bytes. A smaller body fits into one packet. */
const minimumSize = 1400

/** The cheaper first. These levels cost a tenth of a millisecond for a page of 100 records, and leave an eighth of it. */
const encoders = [
  ["zstd", (bytes) => zstdCompressSync(bytes, { params: { [constants.ZSTD_c_compressionLevel]: 3 } })],
  ["gzip", (bytes) => gzipSync(bytes, { level: 1 })]
] satisfies ReadonlyArray<readonly [encoding: string, encode: (bytes: Uint8Array) => Uint8Array]>

const isRefused = /;\s*q=0(\.0*)?\s*$/

/** The encodings that a client names, but those with a weight of 0. */
const named = (acceptEncoding: string): ReadonlyArray<string> =>
  acceptEncoding
    .toLowerCase()
    .split(",")
    .filter((each) => !isRefused.test(each))
    .map((each) => each.split(";", 1).join().trim())

type Response = HttpServerResponse.HttpServerResponse

/**
 * Encodes a response; small ones are left as they are. The middleware of `effect` uses another thread for each response,
 * which costs more than these encoders.
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
  const accepted = named(acceptEncoding)
  const found = encoders.find(([encoding]) => accepted.includes(encoding))
  if (found === undefined || headers["content-encoding"] !== undefined) return response
  const [encoding, encode] = found
  const known = made.get(encoding)
  if (known !== undefined) return known
  const bytes = HttpBody.uint8Array(encode(body.body), body.contentType)
  const encoded = HttpServerResponse.setHeaders(HttpServerResponse.setBody(response, bytes), {
    "content-encoding": encoding,
    vary: [headers["vary"] ?? [], "accept-encoding"].flat().join(", ")
  })
  made.set(encoding, encoded)
  return encoded
}
