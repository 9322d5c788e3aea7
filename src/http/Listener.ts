/** Listens on an address, with limits, and stops gracefully. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Duration, Effect, Layer, Schedule, type Scope } from "effect"
import * as RequestFacts from "../observability/RequestFacts.ts"
import * as Series from "../observability/Series.ts"
import * as Throttle from "../observability/Throttle.ts"
import { type Front, type Limits, OrderedServer } from "./OrderedServer.ts"

interface Options extends Limits {
  readonly host: string
  readonly port: number
  /** True for the public listener: its connections and refusals are in the metrics and the log. */
  readonly isMeasured?: boolean
}

/** The longest duration of requests in flight after the listener is closed. */
export const grace = Duration.seconds(10)

// A client that waits for responses opens no new connection.
const holding = Duration.millis(100)

// Connections that the kernel keeps until they are accepted. The attempts of others would be lost, and repeated a second
// later, when many arrive at once. The kernel has a limit of its own (somaxconn), mostly 4096.
const backlog = 4096

// A new connection may have a request on its way.
const onTheWay = Duration.seconds(1)

type Drained = Pick<
  OrderedServer,
  "listening" | "open" | "beginDrain" | "hold" | "stopAccepting" | "closeIdle" | "closeAllConnections"
>

/**
 * Serves for a duration, and closes each connection after its response. Then accepts no more connections, and returns
 * when all are closed, within `grace`.
 */
export const drain = Effect.fnUntraced(function* (server: Drained, duration: Duration.Duration) {
  if (!server.listening) return
  server.beginDrain()
  yield* Effect.sleep(duration)
  server.hold()
  yield* Effect.sleep(Duration.min(holding, duration))
  yield* Effect.callback<void>((resume) => server.stopAccepting(() => resume(Effect.void)))
  const untilClosed = Effect.repeat({ until: () => server.open === 0, schedule: Schedule.spaced("10 millis") })
  yield* untilClosed(Effect.void).pipe(
    Effect.timeoutOption(Duration.min(onTheWay, duration)),
    Effect.andThen(untilClosed(Effect.sync(() => server.closeIdle()))),
    Effect.timeoutOrElse({ duration: grace, orElse: () => Effect.sync(() => server.closeAllConnections()) })
  )
})

/** Measures a listener until the scope closes, and passes the requests that the server refuses itself to observers. */
const measure = Effect.fnUntraced(function* (server: OrderedServer, most: number) {
  const observers = yield* RequestFacts.RequestObservers
  server.on("refused", (facts: RequestFacts.RequestFacts) => {
    for (const observer of observers) observer(facts)
  })
  const { counter, gauge, read } = yield* Series.current
  const refused = counter("practice_data_http_connections_refused_total")
  server.on("drop", () => refused.add())
  gauge("practice_data_http_connections_limit").set(most)
  yield* read("practice_data_http_connections", () => server.open)
  yield* read("practice_data_http_requests_in_flight", () => server.inFlight)
})

export class Listener extends Context.Service<
  Listener,
  {
    readonly drain: (duration: Duration.Duration) => Effect.Effect<void>
    /** Has requests go to a handler before the routes, until the scope closes. */
    readonly front: (handler: Front) => Effect.Effect<void, never, Scope.Scope>
  }
>()("practice-data/http/Listener") {
  static readonly layer = (options: Options) => {
    const server = new OrderedServer(options)
    const listener = Effect.gen(function* () {
      const fork = Effect.runForkWith(yield* Effect.context())
      const warn = Throttle.make("Connections are refused")
      server.on("drop", () => fork(warn(`MAX_CONNECTIONS=${options.maxConnections} of them are open`)))
      const warnUnread = Throttle.make("Connections are closed")
      server.on("unread", () => fork(warnUnread("their clients do not read responses, which take too much memory")))
      if (options.isMeasured === true) yield* measure(server, options.maxConnections)
      return Listener.of({
        drain: (duration) => drain(server, duration),
        front: (handler) =>
          Effect.acquireRelease(
            Effect.sync(() => Object.assign(server, { front: handler })),
            () => Effect.sync(() => Object.assign(server, { front: undefined }))
          )
      })
    })
    const { host, port } = options
    return Layer.merge(
      Layer.effect(Listener, listener),
      NodeHttpServer.layer(() => server, { host, port, backlog, gracefulShutdownTimeout: grace })
    )
  }
}
