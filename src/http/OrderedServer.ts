/**
 * The server of node:http, with stricter connections: one request at a time, documented responses to malformed, late and
 * fragmented requests, a limit on idle connections, and a shutdown in steps. The event "refused" has the facts of each
 * request that the server refuses itself.
 *
 * node:http emits every request of a chunk at once. A client that sends hundreds and reads no response would have all
 * responses made and kept in memory.
 */
import { type IncomingMessage, Server, ServerResponse } from "node:http"
import { Server as NetServer, type Socket } from "node:net"
import type { Duplex } from "node:stream"
import { Duration, Iterable, Option } from "effect"
import { ownMemory } from "../process/Package.ts"
import { type Connection, isWaiting } from "./Connection.ts"
import { noResponse, refuse } from "./Refusals.ts"
import { abandon, beginReading, refusalOf, ServedRequest } from "./ServedRequest.ts"
import * as Shares from "./Shares.ts"
import { Turns } from "./Turns.ts"

export interface Limits {
  readonly maxConnections: number
  /** From the first byte of a request to the end of its headers. */
  readonly headersTimeout: Duration.Duration
  /** From the first byte of a request to the end of its body. */
  readonly bodyTimeout: Duration.Duration
  /** For a connection that moves no byte and waits for no response. */
  readonly idleTimeout: Duration.Duration
}

/** The maximum size of the queued requests of all connections, in KiB. Beyond it, a client that sends ahead is disconnected. */
const maximumQueued = 10_000

/** The size of the head of a request, in whole KiB. */
const sizeOf = (request: IncomingMessage | undefined) =>
  Math.ceil((request?.rawHeaders ?? []).reduce((size, { length }) => size + length, request?.url?.length ?? 1) / 1024)

/** The bytes of responses that clients have not read, of all connections: 32 MiB in 256 MiB of memory. */
const maximumUnread = ownMemory() / 8

const unreadOf = (connections: ReadonlyArray<Connection>) =>
  connections.reduce((bytes, { socket }) => bytes + socket.writableLength, 0)

/** Milliseconds in which a refused client can read the response: closing with unread bytes would reset the connection. */
const lingering = 2000

/** Milliseconds before a request beyond the share of its sender is refused: the client may dial again at once. */
const pause = 1000

/** A turn of the event loop that is shorter, in milliseconds, had no socket to handle. */
const quietTurn = 0.2

/** The longest wait for a quiet turn, in milliseconds. */
const longestWaitForQuiet = 250

const statuses: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  HPE_HEADER_OVERFLOW: 431
}

/** The events of a request. */
const events = ["request", "checkContinue", "checkExpectation"]

/** Handles a request before the routes. It either responds, or passes the request on. */
export type Front = (request: ServedRequest, response: ServerResponse, pass: () => void) => void

export class OrderedServer extends Server {
  /** Gets requests before the listeners of "request" do. */
  front: Front | undefined
  readonly #connections = new Map<Duplex, Connection>()
  /** Those that wait for their refusal, beside the others. */
  readonly #paused = new Set<Connection>()
  readonly #most: number
  readonly #shares: ReturnType<typeof Shares.make>
  readonly #turns = new Turns()
  readonly #longestIdle: number
  readonly #reports: ServedRequest["reports"] = {
    fragmented: ({ socket }) => this.#fail("TOO_MANY_PIECES", socket),
    identified: ({ headers, socket }, organization) => {
      const connection = this.#connections.get(socket)
      if (connection !== undefined) this.#shares.settle(connection, headers.authorization, organization)
    }
  }
  #queued = 0
  #isLooking = false
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
      IncomingMessage: ServedRequest,
      // Node's own, of 64 KiB, is 122 MiB for 2,000 bodies that nobody reads yet.
      highWaterMark: 16 * 1024,
      // Refused below, with a body.
      requireHostHeader: false,
      // A request to switch to another protocol is served as HTTP, and is the last of its connection.
      shouldUpgradeCallback: () => false
    })
    this.#most = limits.maxConnections
    this.#shares = Shares.make(limits.maxConnections)
    this.timeout = idleTimeout
    // A client may end its side after its request. Types of node:http lack this property.
    Object.assign(this, { httpAllowHalfOpen: true })
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
    this.on("connect", (request, socket) => {
      const connection = this.#connections.get(socket.on("error", () => socket.destroy()).resume())
      if (connection?.isRefused === false) this.#refuse(connection, 405, request)
    })
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
    const [request, response] = args
    const isRequest = events.includes(event) && request instanceof ServedRequest && response instanceof ServerResponse
    if (!isRequest) return super.emit(event, ...args)
    const connection = this.#connections.get(request.socket)
    if (connection === undefined || connection.isRefused || !connection.socket.writable) return request.forget()
    request.reports = this.#reports
    // node:http drops the bytes after it.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false
    const refusal = event === "checkExpectation" ? 417 : refusalOf(request)
    if (refusal !== undefined) return this.#refuse(connection, refusal, request)
    const holder = this.#shares.claim(connection, this.open, request.headers.authorization)
    if (holder !== undefined) return this.#refuse(connection, 503, request, holder.organization)
    const begin = () => {
      // Its body was refused while it was queued: that response comes next.
      if (connection.isRefused && !request.complete) return this.#next(connection)
      this.#begin(connection, response)
      const pass = () => {
        request.restore()
        super.emit(event, ...args)
      }
      if (event === "request" && this.front !== undefined) this.front(request, response, pass)
      else pass()
    }
    const isNext = connection.current === undefined && connection.queue.length === 0
    if (isNext && !this.#isDraining && !this.#isHolding && this.#turns.isFree()) begin()
    else {
      this.#enqueue(connection, begin, request)
      // The last response is known once the whole chunk is parsed.
      if (this.#isDraining) setImmediate(() => this.#next(connection))
      else if (isNext) this.#wait(connection)
    }
    return true
  }

  #open(socket: Socket) {
    this.#turns.accept()
    if (this.#connections.size - this.#paused.size >= this.#most && !this.#makeRoom()) return void socket.destroy()
    const connection: Connection = {
      socket,
      holder: undefined,
      current: undefined,
      queue: [],
      bytesRead: 0,
      deadline: performance.now() + this.#longestIdle,
      isRefused: false,
      isHalfClosed: false
    }
    this.#connections.set(socket, connection)
    // node:http resumes it for the next request whenever a response ends.
    socket.on("resume", () => connection.queue.length > 0 && socket.pause())
    socket.once("close", () => {
      this.#connections.delete(socket)
      this.#paused.delete(connection)
      this.#shares.release(connection)
      this.#clearQueue(connection)
      abandon(socket)
    })
  }

  /** Closes the oldest connection that waits for its client: one of a stranger, otherwise an idle one. */
  #makeRoom(): boolean {
    this.emit("drop")
    const find = (isFound: (connection: Connection) => boolean) =>
      Iterable.findFirst(this.#connections.values(), (connection) => isWaiting(connection) && isFound(connection))
    const ofStranger = find(({ holder }) => holder?.organization === undefined)
    const last = Option.getOrUndefined(Option.orElse(ofStranger, () => find(({ current }) => current === undefined)))
    last?.socket.destroy()
    return last !== undefined
  }

  #begin(connection: Connection, response: ServerResponse) {
    connection.current = response
    connection.deadline = Infinity
    this.#look()
    if (this.#isDraining && connection.queue.length === 0) response.setHeader("connection", "close")
    response.once("close", () => {
      beginReading(response.req)
      connection.current = undefined
      connection.bytesRead = connection.socket.bytesRead
      // A refused connection keeps its own.
      connection.deadline = Math.min(connection.deadline, performance.now() + this.#longestIdle)
      if (connection.queue.length > 0) this.#wait(connection)
    })
  }

  #enqueue(connection: Connection, begin: () => void, request: IncomingMessage | undefined) {
    const { current, queue, socket } = connection
    const size = sizeOf(request)
    const isAhead = current !== undefined || queue.length > 0
    queue.push({ begin, size, authorization: request?.headers.authorization })
    this.#queued += size
    if (this.#queued <= maximumQueued || !isAhead) socket.pause()
    else {
      this.emit("refused", refuse(socket, noResponse, request))
      if (request instanceof ServedRequest) request.forget()
    }
  }

  /** Begins the next request in its turn. */
  #wait(connection: Connection) {
    if (this.#turns.isFree()) this.#next(connection)
    else this.#turns.wait(Shares.keyOf(connection.queue[0]?.authorization), () => this.#next(connection))
  }

  #next(connection: Connection) {
    if (this.#isHolding || connection.current !== undefined) return
    if (!connection.socket.writable) return this.#clearQueue(connection)
    const next = connection.queue.shift()
    if (next === undefined) return
    this.#queued -= next.size
    if (connection.queue.length === 0) connection.socket.resume()
    next.begin()
  }

  #clearQueue(connection: Connection) {
    for (const { size } of connection.queue) this.#queued -= size
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
  #refuse(connection: Connection, status: number, request: IncomingMessage | undefined, organization?: string) {
    connection.isRefused = true
    const respond = () => {
      connection.deadline = performance.now() + lingering
      this.emit("refused", refuse(connection.socket, status, request, organization))
    }
    const respondLater = () => {
      connection.deadline = Infinity
      this.#shares.release(connection)
      if (this.#paused.size >= this.#most) return respond()
      // Later ones wait longer: clients that dial again at once would all do so at the same time.
      const wait = pause * (1 + this.#paused.size / this.#most)
      this.#paused.add(connection)
      // oxlint-disable-next-line effecttsgo/global-timers -- as above
      setTimeout(() => this.#paused.delete(connection) && respond(), wait)
    }
    const begin = status === 503 ? respondLater : respond
    const { current, queue } = connection
    if ((current === undefined || current.req === request) && queue.length === 0) begin()
    else this.#enqueue(connection, begin, request)
    return true
  }

  #sweep() {
    const now = performance.now()
    for (const connection of this.#connections.values()) {
      const { current, deadline, queue, socket } = connection
      if (deadline < now && queue.length === 0) socket.destroy()
      // A client that left looks like one that only ended its side, until a second write fails. Any client skips these.
      if (!socket.readableEnded || current?.headersSent !== false || current.req.httpVersion !== "1.1") continue
      if (connection.isHalfClosed) current.writeContinue()
      connection.isHalfClosed = true
    }
  }

  /** Looks for unread responses 100 ms later: a key fills the memory of a small machine in a second. */
  #look() {
    if (this.#isLooking) return
    this.#isLooking = true
    // oxlint-disable-next-line effecttsgo/global-timers -- a server of node:http runs in no effect
    setTimeout(() => {
      this.#isLooking = false
      this.#closeUnread()
    }, 100).unref()
  }

  /** Closes connections where unread responses take too much memory: first those of the sender who has the most. */
  #closeUnread() {
    const answered = [...this.#connections.values()].filter(({ current }) => current !== undefined)
    if (answered.length > 0) this.#look()
    let excess = unreadOf(answered) - maximumUnread
    if (excess <= 0) return
    this.emit("unread")
    const senders = Map.groupBy(answered, ({ current }) => Shares.keyOf(current?.req.headers.authorization))
    const ordered = [...senders.values()].toSorted((one, other) => unreadOf(other) - unreadOf(one))
    for (const { socket } of ordered.flat()) {
      if (excess <= 0) return
      excess -= socket.writableLength
      socket.destroy()
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

  /** Closes connections without a request. Node's own would cut off a response that a slow client still reads. */
  closeIdle() {
    for (const { bytesRead, current, queue, socket } of this.#connections.values()) {
      if (current === undefined && queue.length === 0 && socket.bytesRead === bytesRead) socket.destroy()
    }
  }
}
