/** A limit on how many small pieces the body of a request may come in: each costs as much as a thousand bytes. */
import { IncomingMessage } from "node:http"

/** So many pieces may be of any size. Past that they must have some bytes on average. */
const freePieces = 256
const minimumAverage = 32

/** A request that reports a body in too many small pieces, and drops the rest of it. */
export class PieceLimitedRequest extends IncomingMessage {
  onTooManyPieces: ((request: IncomingMessage) => void) | undefined
  #pieces = 0
  #bytes = 0
  #isRefused = false

  override push(piece: unknown, encoding?: BufferEncoding): boolean {
    // The parser pushes all that it has read, however often it is told to stop.
    if (this.#isRefused) return true
    if (!Buffer.isBuffer(piece)) return super.push(piece, encoding)
    this.#pieces += 1
    this.#bytes += piece.length
    this.#isRefused = this.#pieces > freePieces && this.#bytes < this.#pieces * minimumAverage
    if (!this.#isRefused) return super.push(piece, encoding)
    this.onTooManyPieces?.(this)
    return false
  }
}
