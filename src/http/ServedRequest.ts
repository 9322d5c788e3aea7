/** A request of `OrderedServer`, which reports to it, and the check of its headers. */
import { IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import { free, uncounted } from "./LargeBodies.ts"

interface Reports {
  /** Called once when the body comes in too many small pieces. The rest of it is dropped. */
  readonly fragmented: (request: IncomingMessage) => void
  /** Called when the API key of the request is known to belong to an organization. */
  readonly identified: (request: IncomingMessage, organization: string) => void
}

/**
 * Each piece of a body costs as much as 1000 bytes: 256 may have any size, beyond them the average counts. Chunks of 32
 * bytes pass: some arrive in two pieces, where a read ends within them.
 */
const minimumAverage = 28
const mostMissing = 256 * minimumAverage

/** The bytes of bodies that nobody has begun to read, as while an API key is looked up: 64 KiB of each are received. */
const maximumUnread = 8 * 1024 * 1024
let unread = 0
const unreadRequests = new Set<ServedRequest>()

export class ServedRequest extends IncomingMessage {
  // The same for all: with closures for each request, five times as much outlived the young generation, measured.
  reports: Reports | undefined
  /** True if it was refused while it was handled: observers have seen it, and its handler ends as if the client had left. */
  isRefused = false
  /** The bytes that the pieces lack for the average. */
  #missing = 0
  #received = 0
  #unread = 0
  #isRead = false
  #isWhole = true
  /** The body so far, until somebody wants it as a stream, whose machinery costs more than a small read. */
  #held: Array<Buffer> | undefined = []
  #heldBytes = 0
  #isEnded = false
  #onWhole: ((body: Buffer) => void) | undefined

  override push(piece: unknown, encoding?: BufferEncoding): boolean {
    // The parser pushes all that it has read, however often it is told to stop.
    if (this.#missing > mostMissing) return true
    if (Buffer.isBuffer(piece)) {
      this.#missing += minimumAverage - piece.length
      this.#received += piece.length
      if (!this.#isRead && this.#received > uncounted && !this.#hold(piece.length)) {
        free(piece)
        return false
      }
    }
    if (this.#missing <= mostMissing) {
      return this.#held === undefined ? super.push(piece, encoding) : this.#collect(this.#held, piece)
    }
    this.reports?.fragmented(this)
    return false
  }

  #collect(held: Array<Buffer>, piece: unknown): boolean {
    if (Buffer.isBuffer(piece)) {
      held.push(piece)
      this.#heldBytes += piece.length
    } else if (piece === null) {
      this.#isEnded = true
      this.#onWhole?.(Buffer.concat(held))
    }
    return this.#heldBytes < this.readableHighWaterMark
  }

  /** Calls back with the body once it is whole. It is in no stream unless `restore` puts it there. */
  whole(onWhole: (body: Buffer) => void) {
    if (this.#isEnded) onWhole(Buffer.concat(this.#held ?? []))
    else this.#onWhole = onWhole
  }

  /** Has the body come as a stream, as that of any request. */
  restore() {
    const held = this.#held ?? []
    this.#held = undefined
    for (const piece of held) super.push(piece)
    if (this.#isEnded) super.push(null)
  }

  /** Marks a whole body as read: node:http would read it otherwise, to reach the next request. */
  consume() {
    this.#held = undefined
    this._read(0)
  }

  /** Frees the headers of a request that is not handled. node:http keeps it until its connection has closed. */
  forget(): false {
    this.rawHeaders.length = 0
    this.headers = {}
    return false
  }

  #hold(bytes: number) {
    this.#isWhole &&= unread + bytes <= maximumUnread
    if (this.#isWhole) {
      unread += bytes
      this.#unread += bytes
      unreadRequests.add(this)
    }
    return this.#isWhole
  }

  /** From now on somebody reads the body, or its response has ended. Returns false if a part of it was dropped before. */
  beginReading(): boolean {
    this.#isRead = true
    unread -= this.#unread
    this.#unread = 0
    unreadRequests.delete(this)
    return this.#isWhole
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void) {
    this.beginReading()
    super._destroy(error, callback)
  }
}

/** Begins to read the body of a request. Returns false if a part of it was dropped before, for lack of memory. */
export const beginReading = (request: object): boolean => !(request instanceof ServedRequest) || request.beginReading()

/** Frees the bodies of a closed connection. node:http destroys no request of one that ends with a CONNECT. */
export const abandon = (closed: Socket) => {
  for (const request of unreadRequests) if (request.socket === closed) request.beginReading()
}

/** True if a request was refused while it was handled. */
export const wasRefused = (request: object): boolean => request instanceof ServedRequest && request.isRefused

/** Reports the organization of a request's API key to its server. */
export const identify = (request: object, organization: string) => {
  if (request instanceof ServedRequest) request.reports?.identified(request, organization)
}

/** The names and values of headers that node:http reads. Releases differ in how they treat the rest. */
const mostHeaders = 2000

const isHost = (name = "") => name.length === 4 && name.toLowerCase() === "host"

const hasOneHost = (rawHeaders: ReadonlyArray<string>) => {
  let hosts = 0
  for (let index = 0; index < rawHeaders.length; index += 2) hosts += Number(isHost(rawHeaders[index]))
  return hosts === 1
}

/** The status that refuses a request whose end proxies may see elsewhere; undefined if it is served. */
export const refusalOf = ({ headers, httpVersion, rawHeaders }: IncomingMessage): number | undefined => {
  if (rawHeaders.length >= mostHeaders) return 431
  const encoding = headers["transfer-encoding"]
  if (httpVersion === "1.1" ? !hasOneHost(rawHeaders) : encoding !== undefined) return 400
  if (encoding === undefined) return undefined
  if (encoding.toLowerCase() !== "chunked") return 400
  // node:http ignores errors in the chunks of such a request.
  return headers.upgrade === undefined ? undefined : 411
}
