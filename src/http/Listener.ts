/** Listens on an address, with limits, and stops gracefully. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Duration, Effect, Layer, Schedule } from "effect"
import * as RequestFacts from "../observability/RequestFacts.ts"
import * as Series from "../observability/Series.ts"
import { type Limits, OrderedServer } from "./OrderedServer.ts"
import type { Refused } from "./Refusal.ts"

/** An address, and what a client of it may hold on to. */
export interface Options extends Limits {
  readonly host: string
  readonly port: number
  /** Whether other processes listen on the same port, and the kernel shares the connections among them. */
  readonly reusePort?: boolean
  /** Whether its connections and what it refuses are in the metrics and the log: so it is for the public listener. */
  readonly isMeasured?: boolean
}

/** The grace period: how long requests in flight may take once the listener is closed. */
export const grace = Duration.seconds(10)

// A client that waits for responses opens no connection that closing would reset.
const holding = Duration.millis(100)

// On a connection that was just opened, a request may be on its way.
const onTheWay = Duration.seconds(1)

const drain = Effect.fnUntraced(function* (server: OrderedServer, duration: Duration.Duration) {
  if (!server.listening) return
  server.beginDrain()
  yield* Effect.sleep(duration)
  server.hold()
  yield* Effect.sleep(Duration.min(holding, duration))
  yield* Effect.callback<void>((resume) => server.stopAccepting(() => resume(Effect.void)))
  const untilClosed = { until: () => server.open === 0, schedule: Schedule.spaced("10 millis") }
  yield* Effect.repeat(Effect.void, untilClosed).pipe(
    Effect.timeoutOption(Duration.min(onTheWay, duration)),
    Effect.andThen(
      Effect.repeat(
        Effect.sync(() => server.closeIdle()),
        untilClosed
      )
    ),
    Effect.timeoutOrElse({ duration: grace, orElse: () => Effect.sync(() => server.closeAllConnections()) })
  )
})

/** Logs when connections are refused, and when they no longer are. */
const reportRefusals = Effect.fnUntraced(function* (server: OrderedServer, most: number) {
  let refused = 0
  let before = 0
  server.on("drop", () => {
    refused += 1
  })
  yield* Effect.suspend(() => {
    const [now, last] = [refused, before]
    before = now
    if (last === 0 && now > 0)
      return Effect.logWarning(`Connections are refused: MAX_CONNECTIONS=${most} of them are open`)
    if (last === 0 || now > last) return Effect.void
    refused = before = 0
    return Effect.log(`Connections are no longer refused, ${now} were`)
  }).pipe(Effect.repeat(Schedule.spaced("5 seconds")), Effect.forkScoped)
})

const refusals: Readonly<Record<number, RequestFacts.Refusal>> = { 408: "timeout", 413: "too_large", 431: "too_large" }

/** Shows the requests that the server refuses itself to those who observe requests. */
const observeRefusals = Effect.fnUntraced(function* (server: OrderedServer) {
  const observers = yield* RequestFacts.RequestObservers
  server.on("refused", ({ address, bytes, request, requestId, status }: Refused) => {
    const facts = RequestFacts.make({
      id: requestId,
      method: request?.method ?? "",
      path: RequestFacts.pathOf(request?.url ?? ""),
      endpoint: "other",
      userAgent: request?.headers["user-agent"],
      address
    })
    facts.status = status
    facts.bytes = bytes
    facts.refusal = refusals[status] ?? "protocol"
    for (const observer of observers) observer(facts)
  })
})

/** What is measured of a listener, until the scope closes. */
const measure = Effect.fnUntraced(function* (server: OrderedServer, most: number) {
  const { counter, gauge, read } = yield* Series.current
  const refused = counter("practice_data_http_connections_refused_total")
  server.on("drop", () => refused.add())
  gauge("practice_data_http_connections_limit").set(most)
  yield* read("practice_data_http_connections", () => server.open)
  yield* read("practice_data_http_requests_in_flight", () => server.inFlight)
})

/** The listener, to stop it gracefully. */
export class Listener extends Context.Service<
  Listener,
  {
    /**
     * Serves everything for a duration, and closes each connection after its response. Then accepts no more connections,
     * finishes what is in flight, and returns when every connection is closed, within `grace`.
     */
    readonly drain: (duration: Duration.Duration) => Effect.Effect<void>
  }
>()("practice-data/http/Listener") {
  /** Listens on an address. */
  static readonly layer = (options: Options) => {
    const server = new OrderedServer(options)
    const listener = Effect.gen(function* () {
      yield* reportRefusals(server, options.maxConnections)
      if (options.isMeasured === true) {
        yield* observeRefusals(server)
        yield* measure(server, options.maxConnections)
      }
      yield* Effect.sync(() => server.sweep()).pipe(
        Effect.repeat(Schedule.spaced(Duration.millis(server.sweepInterval))),
        Effect.forkScoped
      )
      return Listener.of({ drain: (duration) => drain(server, duration) })
    })
    const { host, port, reusePort = false } = options
    return Layer.merge(
      Layer.effect(Listener, listener),
      NodeHttpServer.layer(() => server, { host, port, reusePort, gracefulShutdownTimeout: grace })
    )
  }
}
