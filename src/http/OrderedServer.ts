/**
 * The server of node:http, with what it leaves open: it works on one request of a connection at a time, answers requests
 * that are no HTTP, or do not arrive in time or in pieces of some size, with the documented body, closes connections on which nothing happens, and
 * can stop in steps.
 *
 * node:http parses every request of a chunk and hands all of them over at once. A client that sends hundreds and reads
 * no answer would have all of the answers made, and kept.
 */
import { IncomingMessage, Server, type ServerOptions, ServerResponse, STATUS_CODES } from "node:http"
import { Server as NetServer, type Socket } from "node:net"
import type { Duplex } from "node:stream"
import { requestIdOf } from "./RequestId.ts"

/** What a client may hold on to. Times are in milliseconds. */
export interface Limits {
  /** Connections that are open at once. One more is refused. */
  readonly maxConnections: number
  /** From the first byte of a request to the end of its headers. */
  readonly headersTimeout: number
  /** From the first byte of a request to the end of its body. */
  readonly bodyTimeout: number
  /** On a connection on which no byte moves and no answer is being made. */
  readonly idleTimeout: number
}

/** Requests that wait for their turn, of all connections together. A client that sends more is cut off. */
const mostWaiting = 10_000

/** How many looks a client that was refused may take to read why: its bytes that nobody reads would reset the answer. */
const looksToRead = 2

/** A look at the sockets that took less than this has found nothing to do, in milliseconds. */
const quiet = 0.2

/** How long to look for such a moment, in milliseconds. */
const longestLook = 250

/** So many pieces of a body may be of any size. After that, they have some bytes on average: each costs as much as a thousand. */
const fewPieces = 256
const smallestPiece = 32

/** A request that says when its body comes in pieces that are too small. */
class Request extends IncomingMessage {
  onTinyPieces: (() => void) | undefined
  #pieces = 0
  #bytes = 0
  #isRefused = false

  override push(piece: unknown, encoding?: BufferEncoding): boolean {
    // What the parser has read already is dropped. To say more than once that no more is wanted costs as much as a piece.
    if (this.#isRefused) return true
    if (!Buffer.isBuffer(piece)) return super.push(piece, encoding)
    this.#pieces += 1
    this.#bytes += piece.length
    this.#isRefused = this.#pieces > fewPieces && this.#bytes < this.#pieces * smallestPiece
    if (!this.#isRefused) return super.push(piece, encoding)
    this.onTinyPieces?.()
    return false
  }
}

interface Connection {
  readonly socket: Socket
  /** The answer that is being made or sent. */
  current: ServerResponse | undefined
  /** The requests after it, in their order. */
  readonly waiting: Array<() => void>
  /** How many bytes had been read when the last answer was sent. */
  bytesRead: number
  /** How many looks found it without a request since then. */
  looksIdle: number
  /** Whether nothing more is taken from it. */
  isRefused: boolean
  /** How many more looks it has, once it was told why. */
  looksLeft: number
}

const refusal = (status: number, id: string) => {
  const body = JSON.stringify({ detail: STATUS_CODES[status] })
  const headers = {
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
    connection: "close",
    "x-request-id": id
  }
  return { body, headers }
}

const refuse = (response: ServerResponse, status: number) => {
  const { body, headers } = refusal(status, requestIdOf(response.req.headers["x-request-id"]))
  response.writeHead(status, headers).end(body)
}

/** Answers where no request could be read. */
const refuseBytes = (socket: Socket, status: number) => {
  const { body, headers } = refusal(status, requestIdOf())
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${body}`)
  // Who is late has nothing under way that would reset the answer.
  if (status === 408) socket.destroySoon()
}

const statuses: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  HPE_HEADER_OVERFLOW: 431
}

const hasNoHost = ({ headers, httpVersion }: IncomingMessage) => headers.host === undefined && httpVersion === "1.1"

const optionsOf = ({ bodyTimeout, headersTimeout, idleTimeout }: Limits, lookEvery: number): ServerOptions => ({
  headersTimeout: Math.min(headersTimeout, bodyTimeout),
  requestTimeout: bodyTimeout,
  keepAliveTimeout: idleTimeout,
  connectionsCheckingInterval: lookEvery,
  IncomingMessage: Request,
  // Answered below, with a body.
  requireHostHeader: false,
  // A client that offers another protocol with its request is answered in this one.
  shouldUpgradeCallback: () => false
})

/** See the top of the file. */
export class OrderedServer extends Server {
  /** How often to look for connections to close, in milliseconds. */
  readonly lookEvery: number
  readonly #connections = new Map<Duplex, Connection>()
  readonly #looksIdle: number
  #waiting = 0
  #isLast = false
  #isHolding = false

  constructor(limits: Limits) {
    const lookEvery = Math.min(1000, Math.max(20, Math.min(limits.headersTimeout, limits.bodyTimeout) / 10))
    super(optionsOf(limits, lookEvery))
    this.lookEvery = lookEvery
    this.maxConnections = limits.maxConnections
    this.timeout = limits.idleTimeout
    this.#looksIdle = Math.ceil((limits.idleTimeout + limits.headersTimeout) / lookEvery) + 1
    this.on("connection", (socket) => this.#open(socket))
    this.on("timeout", (socket) => {
      const current = this.#connections.get(socket)?.current
      // An answer that is being made is not the client's to hurry.
      if (current === undefined || current.headersSent) socket.destroy()
      else socket.setTimeout(limits.idleTimeout)
    })
    this.on("checkExpectation", (_: IncomingMessage, response: ServerResponse) => refuse(response, 417))
    this.on("clientError", (error: NodeJS.ErrnoException, socket) => this.#failed(error.code ?? "", socket))
  }

  /** How many connections are open. */
  get open(): number {
    return this.#connections.size
  }

  override emit(event: string, ...args: Array<unknown>): boolean {
    const response = args[1]
    if ((event !== "request" && event !== "checkContinue") || !(response instanceof ServerResponse))
      return super.emit(event, ...args)
    const connection = this.#connections.get(response.req.socket)
    if (connection === undefined || connection.isRefused) return false
    if (response.req instanceof Request)
      response.req.onTinyPieces = () => this.#failed("TINY_PIECES", connection.socket)
    const begin = () => {
      this.#begin(connection, response)
      if (hasNoHost(response.req)) refuse(response, 400)
      else super.emit(event, ...args)
    }
    if (connection.current === undefined && connection.waiting.length === 0 && !this.#isLast) begin()
    else {
      this.#wait(connection, begin)
      // Which answer is the last is known when all that came with this request has been parsed.
      if (this.#isLast) setImmediate(() => this.#next(connection))
    }
    return true
  }

  #open(socket: Socket) {
    const connection: Connection = {
      socket,
      current: undefined,
      waiting: [],
      bytesRead: 0,
      looksIdle: 0,
      isRefused: false,
      looksLeft: Infinity
    }
    this.#connections.set(socket, connection)
    socket.once("close", () => {
      this.#connections.delete(socket)
      this.#forget(connection)
    })
  }

  #begin(connection: Connection, response: ServerResponse) {
    connection.current = response
    connection.looksIdle = 0
    if (this.#isLast && connection.waiting.length === 0) response.setHeader("connection", "close")
    response.once("close", () => {
      connection.current = undefined
      connection.bytesRead = connection.socket.bytesRead
      this.#next(connection)
    })
  }

  #wait(connection: Connection, begin: () => void) {
    connection.waiting.push(begin)
    this.#waiting += 1
    if (this.#waiting > mostWaiting) connection.socket.destroy()
    else connection.socket.pause()
  }

  #next(connection: Connection) {
    if (this.#isHolding || connection.current !== undefined) return
    if (!connection.socket.writable) return this.#forget(connection)
    const begin = connection.waiting.shift()
    if (begin === undefined) return
    this.#waiting -= 1
    if (connection.waiting.length === 0) connection.socket.resume()
    begin()
  }

  #forget(connection: Connection) {
    this.#waiting -= connection.waiting.length
    connection.waiting.length = 0
  }

  /** A client went away, or sent what is no HTTP, or did not send it in time. */
  #failed(code: string, socket: Duplex) {
    const connection = this.#connections.get(socket)
    const isSilent = code === "ERR_HTTP_REQUEST_TIMEOUT" && connection?.socket.bytesRead === 0
    if (connection === undefined || !socket.writable || code === "ECONNRESET" || isSilent) {
      socket.destroy()
      return
    }
    if (connection.isRefused) return
    connection.isRefused = true
    const { current } = connection
    const tell = () => {
      connection.looksLeft = looksToRead
      refuseBytes(connection.socket, statuses[code] ?? 400)
    }
    const isEarlier = current !== undefined && current.req.complete
    // The answers to the requests before it come first.
    if (isEarlier || connection.waiting.length > 0) this.#wait(connection, tell)
    else if (current?.headersSent === true) socket.destroy()
    else tell()
  }

  /** A look: closes connections whose bytes keep them from being idle, and come to no request. */
  closeForgotten() {
    for (const connection of this.#connections.values()) {
      connection.looksLeft -= 1
      if (connection.current === undefined && connection.waiting.length === 0) connection.looksIdle += 1
      if (connection.looksIdle > this.#looksIdle || connection.looksLeft < 0) connection.socket.destroy()
    }
  }

  /** From now on an answer closes its connection, unless more was asked on it. */
  beginLastAnswers() {
    this.#isLast = true
    for (const { current, waiting } of this.#connections.values()) {
      if (current?.headersSent === false && waiting.length === 0) current.setHeader("connection", "close")
    }
  }

  /** Begins no answer until it accepts no more. */
  hold() {
    this.#isHolding = true
  }

  /**
   * Accepts no more connections, and leaves the open ones alone. What the kernel has taken in the meantime would be
   * reset: this looks for it until a look finds nothing, and closes right after that one.
   */
  stopAccepting(done: () => void) {
    const end = performance.now() + longestLook
    const look = (last: number) => {
      const now = performance.now()
      if (now - last > quiet && now < end) return void setImmediate(look, now)
      NetServer.prototype.close.call(this)
      this.#isHolding = false
      for (const connection of this.#connections.values()) this.#next(connection)
      done()
    }
    setImmediate(look, -Infinity)
  }

  /** Closes the connections on which nothing is asked or answered. */
  closeIdle() {
    for (const { bytesRead, current, socket, waiting } of this.#connections.values()) {
      if (current === undefined && waiting.length === 0 && socket.bytesRead === bytesRead) socket.destroy()
    }
  }
}
