/** Listens on an address, within the limits of node:http, and stops gracefully. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { Server as NetServer, Socket } from "node:net"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Duration, Effect, Fiber, identity, Layer, type Scope } from "effect"
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import { ServeError } from "effect/http/HttpServerError"
import * as RequestFacts from "../observability/RequestFacts.ts"
import * as Metrics from "../observability/Metrics.ts"
import * as Logging from "../observability/Logging.ts"
import { Refusals, statusError, toRequestId } from "./Exchange.ts"

export interface Options {
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
  readonly maxConnections: number
  /** From the first byte of a request to the end of its headers. */
  readonly headersTimeout: Duration.Duration
  /** From the first byte of a request to the end of its body. */
  readonly bodyTimeout: Duration.Duration
  /** For a connection without a request. */
  readonly idleTimeout: Duration.Duration
  /** True for the public listener: its connections and refusals are in the metrics and the log. */
  readonly isMeasured?: boolean
}

/** The longest duration of requests in flight after the listener is closed. */
export const grace = Duration.seconds(10)

/** The longest time for which idle connections stay open after the listener is closed: a request may be on its way. */
const onTheWay = Duration.seconds(1)

/** Connections that the kernel keeps until they are accepted. Its own limit (somaxconn) is mostly 4096. */
const backlog = 4096

/** Milliseconds without a byte in either direction, for a client that does not read: longer than any response takes. */
const silence = 75_000

/** Handles a request before effect does, or passes it on. */
export const Front = Context.Reference<(request: IncomingMessage, response: ServerResponse, pass: () => void) => void>(
  "practice-data/http/Listener/Front",
  { defaultValue: () => (_request, _response, pass) => pass() }
)

const makeServer = ({ bodyTimeout, headersTimeout, idleTimeout, maxConnections }: Options) => {
  const requestTimeout = Duration.toMillis(bodyTimeout)
  const server = createServer({
    headersTimeout: Math.min(Duration.toMillis(headersTimeout), requestTimeout),
    requestTimeout,
    keepAliveTimeout: Duration.toMillis(idleTimeout),
    connectionsCheckingInterval: 1000,
    // A request to switch to another protocol is served as HTTP.
    shouldUpgradeCallback: () => false
  })
  server.maxConnections = maxConnections
  server.timeout = silence
  return server
}

/** The open connections of a server, and its responses in progress. */
const watch = (server: Server) => {
  const sockets = new Set<Socket>()
  const responses = new Set<ServerResponse>()
  server.on("connection", (socket) => sockets.add(socket.once("close", () => sockets.delete(socket))))
  server.on("request", (_request, response) => {
    responses.add(response.once("close", () => responses.delete(response)))
    if (!server.listening) response.shouldKeepAlive = false
  })
  return { sockets, responses }
}

type Watched = ReturnType<typeof watch>

const refusals: Readonly<Record<string, readonly [status: number, refusal: RequestFacts.Refusal]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, "timeout"],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, "too_large"],
  HPE_HEADER_OVERFLOW: [431, "too_large"]
}

/** Responds to a client that sent malformed HTTP, or was too slow, and closes its connection. */
const refuse = (code: string, socket: Socket, request: IncomingMessage | undefined): RequestFacts.RequestFacts => {
  const [status, refusal] = refusals[code] ?? [400, "protocol"]
  const id = toRequestId(request?.headers["x-request-id"])
  const { body, headers } = statusError(status)
  const text = JSON.stringify(body)
  const lines = Object.entries({
    "content-type": "application/json",
    "content-length": text.length,
    connection: "close",
    ...headers,
    "x-request-id": id
  }).map(([name, value]) => `${name}: ${value}`)
  socket.end([`HTTP/1.1 ${status} ${body.detail}`, ...lines, "", text].join("\r\n"))
  socket.destroySoon()
  const head = { id, method: "", path: "", endpoint: "other", userAgent: undefined, address: socket.remoteAddress }
  const times = { duration: 0, database: 0, waited: 0 }
  return { ...RequestFacts.describeHead(head), ...times, status, refusal, bytes: text.length, trace: undefined }
}

/** Refuses malformed requests. One that is handled already has its facts from there. */
const refuseErrors = (
  server: Server,
  { responses }: Watched,
  handled: typeof Refusals.Service,
  onRefused: (facts: RequestFacts.RequestFacts) => void
) =>
  server.on("clientError", ({ code = "" }: NodeJS.ErrnoException, socket) => {
    if (!(socket instanceof Socket)) return
    const inProgress = Array.from(responses).filter(({ req }) => req.socket === socket)
    const isAnswered = inProgress.some(({ headersSent }) => headersSent)
    if (isAnswered || !socket.writable || code === "ECONNRESET" || socket.bytesRead === 0) return void socket.destroy()
    const request = inProgress.find(({ req }) => !req.complete)?.req
    const facts = refuse(code, socket, request)
    const { bytes, id, refusal, status } = facts
    if (request === undefined) onRefused(facts)
    else handled.set(request, { bytes, id, refusal, status })
  })

/** Measures a listener until the scope closes. */
const measure = Effect.fnUntraced(function* (server: Server, { responses, sockets }: Watched) {
  const { counter, read } = yield* Metrics.series
  const refused = counter("practice_data_http_connections_refused_total")
  server.on("drop", () => refused.add())
  yield* read("practice_data_http_connections", () => sockets.size)
  yield* read("practice_data_http_requests_in_flight", () => responses.size)
})

const listen = (server: Server, { host, port }: Options) =>
  Effect.callback<string, ServeError>((resume) => {
    const onError = (cause: Error) => resume(Effect.fail(new ServeError({ cause })))
    server.once("error", onError).listen({ host, port, backlog }, () => {
      server.off("error", onError)
      const { address, family, port: bound } = Object.assign({ address: host, family: "", port }, server.address())
      resume(Effect.succeed(`http://${family === "IPv6" ? `[${address}]` : address}:${bound}`))
    })
  })

/**
 * Accepts no more connections, and closes each after its response; those without a request after `idle`. Returns when all
 * are closed, within `grace`.
 */
const stop = Effect.fnUntraced(function* (server: Server, { responses, sockets }: Watched, idle: Duration.Duration) {
  if (!server.listening) return
  // `close` of node:http ends idle connections at once.
  const closing = Effect.callback<void>((resume) => {
    NetServer.prototype.close.call(server, () => resume(Effect.void))
  })
  const closed = yield* Effect.forkChild(closing, { startImmediately: true })
  for (const response of responses) response.shouldKeepAlive = false
  yield* Effect.sleep(idle)
  const busy = new Set(Array.from(responses, ({ req }) => req.socket))
  for (const socket of sockets) if (!busy.has(socket)) socket.destroy()
  yield* Effect.timeoutOrElse(Fiber.join(closed), {
    duration: grace,
    orElse: () => Effect.sync(() => server.closeAllConnections())
  })
  // Ends the server's checks of timeouts.
  server.close()
})

type App<E> = Effect.Effect<HttpServerResponse.HttpServerResponse, E, HttpServerRequest.HttpServerRequest | Scope.Scope>

export class Listener extends Context.Service<
  Listener,
  {
    /** The address that it is bound to. */
    readonly url: string
    /** Serves for a duration, then stops. */
    readonly drain: (duration: Duration.Duration) => Effect.Effect<void>
  }
>()("practice-data/http/Listener") {
  /** Serves an application. The socket opens once the application is ready. */
  static readonly layer = <E, E2, R2>(app: Effect.Effect<App<E>, E2, R2>, options: Options) =>
    Layer.effect(
      Listener,
      Effect.gen(function* () {
        const server = makeServer(options)
        const watched = watch(server)
        // With a middleware, the fiber of a request ends with nothing. Otherwise it would keep the response in memory for
        // as long as the scope remembers the fiber.
        const handle = yield* NodeHttpServer.makeHandler(yield* app, {
          scope: yield* Effect.scope,
          middleware: identity
        })
        const front = yield* Front
        server.on("request", (request, response) => front(request, response, () => handle(request, response)))
        const observers = options.isMeasured === true ? yield* RequestFacts.RequestObservers : []
        refuseErrors(server, watched, yield* Refusals, (facts) => {
          for (const observer of observers) observer(facts)
        })
        const fork = Effect.runForkWith(yield* Effect.context())
        const warn = Logging.limitedWarning("Connections are refused")
        server.on("drop", () => fork(warn(`MAX_CONNECTIONS=${options.maxConnections} of them are open`)))
        if (options.isMeasured === true) yield* measure(server, watched)
        const url = yield* Effect.acquireRelease(listen(server, options), () => stop(server, watched, Duration.zero))
        return Listener.of({
          url,
          drain: (duration) =>
            Effect.andThen(Effect.sleep(duration), stop(server, watched, Duration.min(onTheWay, duration)))
        })
      })
    ).pipe(Layer.provide(NodeHttpServer.layerHttpServices))
}
