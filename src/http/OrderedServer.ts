/**
 * The server of node:http, with stricter connections: one request at a time, documented responses to malformed, late and
 * fragmented requests, a limit on idle connections, and a shutdown in steps. The event "refused" has the facts of each
 * request that the server refuses itself.
 *
 * node:http emits every request of a chunk at once. A client that sends hundreds and reads no response would have all
 * responses made and kept in memory.
 */
import { randomUUID } from "node:crypto"
import { IncomingMessage, Server, ServerResponse, STATUS_CODES } from "node:http"
import { Server as NetServer, type Socket } from "node:net"
import type { Duplex } from "node:stream"
import { DateTime, Duration, Iterable } from "effect"
import { errorHeader, errorName } from "../api/Errors.ts"
import * as RequestFacts from "../observability/RequestFacts.ts"

export interface Limits {
  readonly maxConnections: number
  /** From the first byte of a request to the end of its headers. */
  readonly headersTimeout: Duration.Duration
  /** From the first byte of a request to the end of its body. */
  readonly bodyTimeout: Duration.Duration
  /** For a connection that moves no byte and waits for no response. */
  readonly idleTimeout: Duration.Duration
}

/** The maximum number of queued requests of all connections. A client that exceeds it is disconnected. */
const maximumQueued = 10_000

/** Milliseconds in which a refused client can read the response: closing with unread bytes would reset the connection. */
const lingering = 2000

/** A turn of the event loop that is shorter, in milliseconds, had no socket to handle. */
const quietTurn = 0.2

/** The longest wait for a quiet turn, in milliseconds. */
const longestWaitForQuiet = 250

/**
 * Each piece of a body costs as much as 1000 bytes: 256 may have any size, beyond them the average counts. Chunks of 32
 * bytes pass: some arrive in two pieces, where a read ends within them.
 */
const minimumAverage = 28
const mostMissing = 256 * minimumAverage

/** A request that reports a body in too many small pieces, and drops the rest. */
class PieceLimitedRequest extends IncomingMessage {
  onTooManyPieces: ((request: IncomingMessage) => void) | undefined
  /** The bytes that the pieces lack for the average. */
  #missing = 0

  override push(piece: unknown, encoding?: BufferEncoding): boolean {
    // The parser pushes all that it has read, however often it is told to stop.
    if (this.#missing > mostMissing) return true
    if (Buffer.isBuffer(piece)) this.#missing += minimumAverage - piece.length
    if (this.#missing <= mostMissing) return super.push(piece, encoding)
    this.onTooManyPieces?.(this)
    return false
  }
}

interface Connection {
  readonly socket: Socket
  /** The response in progress. */
  current: ServerResponse | undefined
  /** The requests after it, in order. */
  readonly queue: Array<() => void>
  /** The bytes read when the last response was sent. */
  bytesRead: number
  /** When it is closed unless a request begins: bytes that never become a request keep it from being idle. */
  deadline: number
  /** True if no more requests are accepted. */
  isRefused: boolean
}

const statuses: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  HPE_HEADER_OVERFLOW: 431
}

/** The events of a request. */
const events = ["request", "checkContinue", "checkExpectation"]

/** The names and values of headers that node:http reads. Releases differ in how they treat the rest. */
const mostHeaders = 2000

/** The status that refuses a request whose end proxies may see elsewhere; undefined if it is served. */
const refusalOf = ({ headers, httpVersion, rawHeaders }: IncomingMessage): number | undefined => {
  if (rawHeaders.length >= mostHeaders) return 431
  const encoding = headers["transfer-encoding"]
  if (httpVersion === "1.1" ? headers.host === undefined : encoding !== undefined) return 400
  if (encoding === undefined) return undefined
  if (encoding.toLowerCase() !== "chunked") return 400
  // node:http ignores errors in the chunks of such a request.
  return headers.upgrade === undefined ? undefined : 411
}

const visibleAscii = /^[\x21-\x7e]{1,128}$/

/** The id that the client sent if it is 1 to 128 visible ASCII characters, otherwise a new one. */
export const requestIdOf = (sent?: string | ReadonlyArray<string>): string =>
  typeof sent === "string" && visibleAscii.test(sent) ? sent : randomUUID()

/** An error of no endpoint: the text of its status, and the header that names it. */
export const statusError = (status: number) => {
  const detail = STATUS_CODES[status] ?? ""
  return { body: { detail }, headers: { [errorHeader]: errorName(detail) } }
}

// Their handlers end as if the client had left.
const refusedRequests = new WeakSet<object>()

/** True if a request was refused while it was handled: observers have seen it. */
export const wasRefused = (request: object): boolean => refusedRequests.has(request)

/** The status of a connection that is closed without a response. */
const noResponse = 444

const refusals: Readonly<Record<number, RequestFacts.Refusal>> = { 408: "timeout", 413: "too_large", 431: "too_large" }

/** Responds to a request that does not reach the routes, as far as it could be read, and closes its connection. */
const refuse = (socket: Socket, status: number, request: IncomingMessage | undefined): RequestFacts.RequestFacts => {
  if (request !== undefined) refusedRequests.add(request)
  const id = requestIdOf(request?.headers["x-request-id"])
  const facts = new RequestFacts.Account({
    id,
    method: request?.method ?? "",
    path: RequestFacts.pathOf(request?.url ?? ""),
    endpoint: "other",
    userAgent: request?.headers["user-agent"],
    address: socket.remoteAddress
  })
  facts.status = status
  facts.refusal = refusals[status] ?? "protocol"
  if (status === noResponse) {
    socket.destroy()
    return facts
  }
  const error = statusError(status)
  const body = JSON.stringify(error.body)
  const head = [
    `HTTP/1.1 ${status} ${error.body.detail}`,
    `date: ${DateTime.toDateUtc(DateTime.nowUnsafe()).toUTCString()}`,
    "content-type: application/json",
    `content-length: ${body.length}`,
    "connection: close",
    `${errorHeader}: ${error.headers[errorHeader]}`,
    `x-request-id: ${id}`
  ]
  const sent = facts.method === "HEAD" ? "" : body
  facts.bytes = sent.length
  socket.end(`${head.join("\r\n")}\r\n\r\n${sent}`)
  // A client that timed out has no bytes on the way that would reset the connection.
  if (status === 408) socket.destroySoon()
  return facts
}

/** Above this share of the connections, responses close theirs: idle ones would keep other clients out. */
const crowded = 0.75

export class OrderedServer extends Server {
  readonly #connections = new Map<Duplex, Connection>()
  readonly #longestIdle: number
  // One for all: with a closure for each request, five times as much outlived the young generation, measured.
  readonly #tooManyPieces = ({ socket }: IncomingMessage) => this.#fail("TOO_MANY_PIECES", socket)
  #queued = 0
  #isDraining = false
  // Until there is a handler.
  #isHolding = true

  constructor(limits: Limits) {
    const bodyTimeout = Duration.toMillis(limits.bodyTimeout)
    const headersTimeout = Duration.toMillis(limits.headersTimeout)
    const idleTimeout = Duration.toMillis(limits.idleTimeout)
    const sweepInterval = Math.min(1000, Math.max(20, Math.min(headersTimeout, bodyTimeout) / 10))
    super({
      headersTimeout: Math.min(headersTimeout, bodyTimeout),
      requestTimeout: bodyTimeout,
      keepAliveTimeout: idleTimeout,
      connectionsCheckingInterval: sweepInterval,
      IncomingMessage: PieceLimitedRequest,
      // Node's own, of 64 KiB, is 122 MiB for 2,000 bodies that nobody reads yet.
      highWaterMark: 16 * 1024,
      // Refused below, with a body.
      requireHostHeader: false,
      // A request to switch to another protocol is served as HTTP, and is the last of its connection.
      shouldUpgradeCallback: () => false
    })
    this.maxConnections = limits.maxConnections
    this.timeout = idleTimeout
    this.#longestIdle = idleTimeout + headersTimeout + sweepInterval
    this.once("listening", () => {
      // oxlint-disable-next-line effecttsgo/global-timers -- a server of node:http runs in no effect
      const sweeping = setInterval(() => this.#sweep(), sweepInterval).unref()
      this.once("close", () => clearInterval(sweeping))
    })
    this.on("connection", (socket) => this.#open(socket))
    this.on("timeout", (socket) => {
      const current = this.#connections.get(socket)?.current
      // The response is still in progress.
      if (current === undefined || current.headersSent) socket.destroy()
      else socket.setTimeout(idleTimeout)
    })
    this.on("newListener", (event) => {
      if (event === "request") setImmediate(() => this.#release())
    })
    // Without a listener, node:http would respond by itself.
    this.on("checkExpectation", () => {})
    this.on("clientError", (error: NodeJS.ErrnoException, socket) => this.#fail(error.code ?? "", socket))
  }

  get open(): number {
    return this.#connections.size
  }

  /** The number of requests with a response in progress. */
  get inFlight(): number {
    return Iterable.countBy(this.#connections.values(), ({ current }) => current !== undefined)
  }

  override emit(event: string, ...args: Array<unknown>): boolean {
    const response = args[1]
    if (!events.includes(event) || !(response instanceof ServerResponse)) return super.emit(event, ...args)
    const { req: request } = response
    const connection = this.#connections.get(request.socket)
    if (connection === undefined || connection.isRefused || !connection.socket.writable) return false
    if (request instanceof PieceLimitedRequest) request.onTooManyPieces = this.#tooManyPieces
    // node:http drops the bytes after it.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false
    const refusal = event === "checkExpectation" ? 417 : refusalOf(request)
    if (refusal !== undefined) return this.#refuse(connection, refusal, request)
    const begin = () => {
      // Its body was refused while it was queued: that response comes next.
      if (connection.isRefused && !request.complete) return this.#next(connection)
      this.#begin(connection, response)
      super.emit(event, ...args)
    }
    if (connection.current === undefined && connection.queue.length === 0 && !this.#isDraining && !this.#isHolding)
      begin()
    else {
      this.#enqueue(connection, begin, request)
      // The last response is known once the whole chunk is parsed.
      if (this.#isDraining) setImmediate(() => this.#next(connection))
    }
    return true
  }

  #open(socket: Socket) {
    const deadline = performance.now() + this.#longestIdle
    const connection: Connection = { socket, current: undefined, queue: [], bytesRead: 0, deadline, isRefused: false }
    this.#connections.set(socket, connection)
    socket.once("close", () => {
      this.#connections.delete(socket)
      this.#clearQueue(connection)
    })
  }

  #begin(connection: Connection, response: ServerResponse) {
    connection.current = response
    connection.deadline = Infinity
    const isLast = this.#isDraining || this.#connections.size > this.maxConnections * crowded
    if (isLast && connection.queue.length === 0) response.setHeader("connection", "close")
    response.once("close", () => {
      connection.current = undefined
      connection.bytesRead = connection.socket.bytesRead
      // A refused connection keeps its own.
      connection.deadline = Math.min(connection.deadline, performance.now() + this.#longestIdle)
      this.#next(connection)
    })
  }

  #enqueue(connection: Connection, begin: () => void, request: IncomingMessage | undefined) {
    const { queue, socket } = connection
    queue.push(begin)
    this.#queued += 1
    if (this.#queued <= maximumQueued) socket.pause()
    else this.emit("refused", refuse(socket, noResponse, request))
  }

  #next(connection: Connection) {
    if (this.#isHolding || connection.current !== undefined) return
    if (!connection.socket.writable) return this.#clearQueue(connection)
    const begin = connection.queue.shift()
    if (begin === undefined) return
    this.#queued -= 1
    if (connection.queue.length === 0) connection.socket.resume()
    begin()
  }

  #clearQueue(connection: Connection) {
    this.#queued -= connection.queue.length
    connection.queue.length = 0
  }

  /** Handles a client that disconnected, sent malformed HTTP, or was too slow. */
  #fail(code: string, socket: Duplex) {
    const connection = this.#connections.get(socket)
    const sentNothing = code === "ERR_HTTP_REQUEST_TIMEOUT" && connection?.socket.bytesRead === 0
    if (connection === undefined || !socket.writable || code === "ECONNRESET" || sentNothing) {
      socket.destroy()
      return
    }
    if (connection.isRefused) return
    const { current } = connection
    const request = current?.req.complete === false ? current.req : undefined
    if (request !== undefined && current?.headersSent === true) socket.destroy()
    else this.#refuse(connection, statuses[code] ?? 400, request)
  }

  /** Refuses a request after the responses to those before it, and accepts no more of its connection. */
  #refuse(connection: Connection, status: number, request: IncomingMessage | undefined) {
    connection.isRefused = true
    const respond = () => {
      connection.deadline = performance.now() + lingering
      this.emit("refused", refuse(connection.socket, status, request))
    }
    const { current, queue } = connection
    if ((current === undefined || current.req === request) && queue.length === 0) respond()
    else this.#enqueue(connection, respond, request)
    return true
  }

  #sweep() {
    const now = performance.now()
    for (const { deadline, queue, socket } of this.#connections.values()) {
      if (deadline < now && queue.length === 0) socket.destroy()
    }
  }

  /** From now on, responses close their connections unless another request is queued. */
  beginDrain() {
    this.#isDraining = true
    for (const { current, queue } of this.#connections.values()) {
      if (current?.headersSent === false && queue.length === 0) current.setHeader("connection", "close")
    }
  }

  /** Starts no response until `stopAccepting` is done. */
  hold() {
    this.#isHolding = true
  }

  #release() {
    this.#isHolding = false
    for (const connection of this.#connections.values()) this.#next(connection)
  }

  /**
   * Accepts no more connections, and keeps the open ones. Closing resets connections in the backlog of the kernel, so this
   * accepts them until a turn of the event loop is quiet.
   */
  stopAccepting(done: () => void) {
    const end = performance.now() + longestWaitForQuiet
    const turn = (last: number) => {
      const now = performance.now()
      if (now - last > quietTurn && now < end) return void setImmediate(turn, now)
      NetServer.prototype.close.call(this)
      this.#release()
      done()
    }
    setImmediate(turn, -Infinity)
  }

  closeIdle() {
    for (const { bytesRead, current, queue, socket } of this.#connections.values()) {
      if (current === undefined && queue.length === 0 && socket.bytesRead === bytesRead) socket.destroy()
    }
  }
}
