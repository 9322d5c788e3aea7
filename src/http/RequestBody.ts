/** Reads the bytes of a request body, within limits of memory. */
import { Bytes, ByteSize, Context, Data, Effect, Predicate, type Scope, Stream } from "effect"
import { HttpIncomingMessage, type HttpServerError, type HttpServerRequest } from "effect/http"
import { smallBody } from "./LargeBodies.ts"

/** A body was not read: it is larger than it may be; all large bodies together are; or it was not sent as valid HTTP. */
export class BodyNotRead extends Data.TaggedError("BodyNotRead")<{
  readonly reason: "too large" | "too many" | "broken"
}> {}

const tooLarge = new BodyNotRead({ reason: "too large" })
const tooMany = new BodyNotRead({ reason: "too many" })
const broken = new BodyNotRead({ reason: "broken" })

/** The body of the current request, for endpoints that decode it themselves. */
export const ReceivedBody = Context.Reference<Uint8Array>("practice-data/http/RequestBody/ReceivedBody", {
  defaultValue: () => new Uint8Array()
})

const mebibyte = 1024 * 1024

/**
 * How many bytes all bodies in memory may have together, beyond what each may have to be small. Received bytes count, not
 * announced ones: a client that announces much and sends little keeps nobody out.
 */
export class Budget {
  private left: number

  constructor(bytes = 64 * mebibyte) {
    this.left = bytes
  }

  /** Takes bytes, if as many are left. */
  readonly take = (bytes: number): boolean => {
    if (bytes > this.left) return false
    this.left -= bytes
    return true
  }

  readonly give = (bytes: number): void => {
    this.left += bytes
  }
}

const isOverflow = (error: HttpServerError.HttpServerError) =>
  error.reason._tag === "RequestParseError" &&
  (error.reason.reason === "BodyTooLarge" || Predicate.hasProperty(error.reason.cause, "maxBytes"))

/** True if a body may be large: it is sent in chunks, without its length, or announces a large one. */
export const mayBeLarge = ({ headers }: Pick<HttpServerRequest.HttpServerRequest, "headers">): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > smallBody

const readShort = (request: HttpServerRequest.HttpServerRequest, maxBytes: number) =>
  request.arrayBuffer.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(maxBytes)),
    Effect.mapBoth({
      onSuccess: (buffer) => new Uint8Array(buffer),
      onFailure: (error) => (isOverflow(error) ? tooLarge : broken)
    })
  )

const beyondFree = (length: number) => Math.max(0, length - smallBody)

const readLong = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  maxBytes: number,
  budget: Budget
) {
  const pieces: Array<Uint8Array> = []
  let length = 0
  let taken = 0
  yield* Effect.addFinalizer(() => Effect.sync(() => budget.give(taken)))
  const add = (piece: Uint8Array): Effect.Effect<void, BodyNotRead> => {
    length += piece.length
    if (length > maxBytes) return Effect.fail(tooLarge)
    const more = beyondFree(length) - taken
    if (!budget.take(more)) return Effect.fail(tooMany)
    taken += more
    pieces.push(piece)
    return Effect.void
  }
  yield* request.stream.pipe(
    Stream.mapError(() => broken),
    Stream.runForEach(add)
  )
  return Bytes.concat(pieces)
})

/**
 * Reads the body of a request. Its bytes are counted until the request is over.
 *
 * @param options.maxBytes how many bytes it may have; a body that announces more is not read
 */
export const readBody = (
  request: HttpServerRequest.HttpServerRequest,
  { maxBytes, budget }: { readonly maxBytes: number; readonly budget: Budget }
): Effect.Effect<Uint8Array<ArrayBuffer>, BodyNotRead, Scope.Scope> => {
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) return Effect.fail(tooLarge)
  return mayBeLarge(request) ? readLong(request, maxBytes, budget) : readShort(request, maxBytes)
}
