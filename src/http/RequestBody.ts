/** Reads the bytes of a request body, within what the service can hold. */
import { ByteSize, Data, Effect, Predicate, type Scope, Stream } from "effect"
import { HttpIncomingMessage, type HttpServerError, type HttpServerRequest } from "effect/http"

/**
 * A body was not read: it has more bytes than it may have; other large bodies take up all memory that they may have
 * together; or it was not sent as HTTP wants it.
 */
export class BodyNotRead extends Data.TaggedError("BodyNotRead")<{
  readonly reason: "too large" | "too many" | "broken"
}> {}

const tooLarge = new BodyNotRead({ reason: "too large" })
const tooMany = new BodyNotRead({ reason: "too many" })
const broken = new BodyNotRead({ reason: "broken" })

/** What every connection may send without asking how much others have sent. */
const free = 64 * 1024

const mebibyte = 1024 * 1024

/**
 * How many bytes the bodies that are being read and answered may have together, beyond the first 64 KiB of each.
 * Counted are bytes that were received: who announces much and sends little keeps nobody out.
 */
export class Budget {
  private left: number

  constructor(bytes = 64 * mebibyte) {
    this.left = bytes
  }

  /** Takes some bytes, if as many are left. */
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

/** Whether a body may be long: one of an announced and small length is not, nor is one without any length. */
export const mayBeLong = ({ headers }: Pick<HttpServerRequest.HttpServerRequest, "headers">): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > free

const readShort = (request: HttpServerRequest.HttpServerRequest, maxBytes: number) =>
  request.arrayBuffer.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(maxBytes)),
    Effect.mapBoth({
      onSuccess: (buffer) => new Uint8Array(buffer),
      onFailure: (error) => (isOverflow(error) ? tooLarge : broken)
    })
  )

const beyondFree = (length: number) => Math.max(0, length - free)

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
  const whole = new Uint8Array(length)
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
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
  return mayBeLong(request) ? readLong(request, maxBytes, budget) : readShort(request, maxBytes)
}
