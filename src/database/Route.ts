/**
 * The server that the connections of a pool go to. libpq looks for it at each connection; a pool looks for it when it is
 * made, in an outage, and where its URL restricts the servers each second, and once a connection is closed. Connections to
 * any other server are closed.
 */
import { Socket } from "node:net"
import { type PgClient, PgConnection } from "@effect/sql-pg"
import { Deferred, Duration, Effect, Fiber, type Redacted, Schedule } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import * as Loop from "../process/Loop.ts"
import * as ConnectionUrl from "./ConnectionUrl.ts"
import * as Endpoint from "./Endpoint.ts"
import { codeOf, connectFailure, messageOf } from "./SqlFailure.ts"

/** The settings of a pool that its route sets. */
type Routed = Pick<PgClient.PgPoolConfig, keyof ReturnType<Endpoint.Configs["of"]>>

/** The tests of `target_session_attrs`, in the order of preference. */
const accepted: Readonly<
  Record<ConnectionUrl.ConnectionUrl["sessionAttributes"], ReadonlyArray<(server: Endpoint.Server) => boolean>>
> = {
  any: [() => true],
  "read-write": [(server) => !server.isStandby && !server.isReadOnly],
  "read-only": [(server) => server.isStandby || server.isReadOnly],
  primary: [(server) => !server.isStandby],
  standby: [(server) => server.isStandby],
  "prefer-standby": [(server) => server.isStandby, () => true]
}

/** The interval between looks at a server, and the time that it has to respond. */
const period = Duration.seconds(1)

type Reached = Effect.Success<ReturnType<typeof Endpoint.reach>>

const describe = (reached: Reached) => {
  const host = ConnectionUrl.formatHost(reached.endpoint)
  if ("error" in reached) return `${host}: ${messageOf(reached.error)}`
  const { isReadOnly, isStandby } = reached.server
  return `${host} is ${isStandby ? "a standby" : isReadOnly ? "read-only" : "a primary"}`
}

/** Looks for the server, and watches it until the scope closes. */
export const make = Effect.fnUntraced(function* (text: Redacted.Redacted, common: Endpoint.Common) {
  const configs = yield* Endpoint.configsOf(text, common)
  const { url } = configs
  const { hosts, sessionAttributes } = url
  const tests = accepted[sessionAttributes]
  const isStrict = sessionAttributes !== "any" && sessionAttributes !== "prefer-standby"

  let endpoint: Endpoint.Endpoint = { ...hosts[0], tls: undefined, asksSettings: true }
  let isTried = false
  let isFound = false
  let problem: SqlError | undefined
  const sockets = new Map<Socket, string>()
  // The client reads its configuration at each connection, and knows no other way to send the next one elsewhere.
  const pools: Array<Routed> = []

  const open = (to: Endpoint.Endpoint) => {
    if (problem !== undefined) {
      const { cause } = problem.reason
      // A failure to make the pool is reported once. Then each connection finds out by itself.
      if (!isStrict && isTried) problem = undefined
      return new Socket().destroy(cause instanceof Error ? cause : undefined)
    }
    const socket = Endpoint.openSocket(to)
    sockets.set(socket, ConnectionUrl.formatHost(to))
    return socket.once("close", () => sockets.delete(socket))
  }

  const turnTo = (to: Endpoint.Endpoint) => {
    endpoint = to
    isTried = true
    for (const pool of pools) Object.assign(pool, configs.of(to, open))
  }

  /** Reaches for each server. An unreachable one delays none of the others. */
  const reachAll = Effect.flatMap(Endpoint.tlsOf(url), (tls) => {
    if (!isTried) turnTo(Endpoint.waysTo(url, hosts[0], tls)[0])
    return Effect.forEach(hosts, (host) => Effect.forkScoped(Endpoint.reach(configs, host, tls)))
  })

  /** The first server that is accepted. */
  const look = Effect.gen(function* () {
    const fibers = yield* reachAll
    for (const isAccepted of tests) {
      for (const fiber of fibers) {
        const reached = yield* Fiber.join(fiber)
        if ("server" in reached && isAccepted(reached.server)) return reached.endpoint
      }
    }
    const reached = yield* Fiber.joinAll(fibers)
    const refused = reached.filter((one) => "server" in one).map((one) => ConnectionUrl.formatHost(one.endpoint))
    for (const [socket, host] of sockets) if (refused.includes(host)) socket.destroy()
    const [only, ...others] = reached
    if (only !== undefined && others.length === 0 && "error" in only) {
      if (!isFound) turnTo(only.endpoint)
      return yield* only.error
    }
    return yield* connectFailure(`No server of the URL is ${sessionAttributes}: ${reached.map(describe).join("; ")}`)
  }).pipe(Effect.scoped)

  /** The reachable servers of the URL. */
  const servers = reachAll.pipe(
    Effect.flatMap(Fiber.joinAll),
    Effect.map((reached) => reached.flatMap((one) => ("server" in one ? [{ ...one.endpoint, ...one.server }] : []))),
    Effect.scoped
  )

  // With several servers, each has its time: an unreachable one must not take all of it.
  const longest = Duration.sum(configs.connectTimeout, hosts.length > 1 ? period : Duration.zero)
  /** Looks for the server, by connections of its own, and turns the route there. */
  const find = look.pipe(
    Effect.timeoutOrElse({ duration: longest, orElse: () => connectFailure("No answer in time") }),
    Effect.map((found) => {
      turnTo(found)
      isFound = true
      problem = undefined
      for (const [socket, host] of sockets) if (host !== ConnectionUrl.formatHost(found)) socket.destroy()
    }),
    Effect.tapError((error) => Effect.sync(() => (problem = isStrict || !isTried ? error : undefined)))
  )

  /** Ends when the server is not accepted any more, does not respond, or closes its connection: it may come back as another. */
  const watchServer = Effect.gen(function* () {
    const closed = yield* Deferred.make<void>()
    const end = () => Deferred.doneUnsafe(closed, Effect.void)
    const connection = yield* PgConnection.make(
      configs.of(endpoint, (to) => Endpoint.openSocket(to).once("close", end))
    )
    const watching = Effect.repeat(Effect.timeout(Endpoint.look(connection), period), {
      while: (server) => tests.some((isAccepted) => isAccepted(server)),
      schedule: Schedule.spaced(period)
    })
    yield* Effect.raceFirst(watching, Deferred.await(closed))
  }).pipe(Effect.scoped, Effect.ignore)

  yield* Effect.catch(find, (error) =>
    Effect.sync(() => {
      // Where the server responds with a SQLSTATE, the first connection finds out by itself.
      if (!/^\d/.test(codeOf(error))) problem = error
    })
  )
  if (isStrict) {
    const turned = Effect.andThen(watchServer, Effect.ignore(find))
    // A server that is going away may be found once more.
    const atMostOften = Effect.all([turned, Effect.sleep("200 millis")], { concurrency: 2, discard: true })
    yield* Effect.forkScoped(Loop.forever("The route to a server", atMostOften))
  }

  return {
    text,
    url,
    endpoint: () => endpoint,
    servers,
    /** The configuration of a pool: it always has the settings of the server of the route. */
    configOf: <Pool extends Omit<PgClient.PgPoolConfig, keyof Routed>>(pool: Pool): Pool & Routed => {
      const config = { ...pool, ...configs.of(endpoint, open) }
      pools.push(config)
      return config
    },
    find
  }
})

export type Route = Effect.Success<ReturnType<typeof make>>
