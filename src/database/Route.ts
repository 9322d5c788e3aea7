/**
 * The server that the connections of a pool go to. libpq looks for it at each connection; a pool looks for it when it is
 * made, in an outage, and where its URL restricts the servers each second, and once a connection is closed. Connections to
 * any other server are closed.
 */
import { Socket } from "node:net"
import type { PgClient } from "@effect/sql-pg"
import { Deferred, Duration, Effect, Fiber, type Redacted, Result, Schedule, type Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import * as ConnectionUrl from "./ConnectionUrl.ts"
import * as Endpoint from "./Endpoint.ts"
import * as ServerTls from "./ServerTls.ts"
import { codeOf, connectFailure, messageOf } from "./SqlFailure.ts"

/** The settings of a pool that its route sets. */
type Routed = Pick<PgClient.PgPoolConfig, keyof ReturnType<Endpoint.Configs["of"]> | "stream">

export interface Route {
  /** The text of the URL. */
  readonly text: Redacted.Redacted
  readonly url: ConnectionUrl.ConnectionUrl
  /** The server that new connections go to. */
  readonly endpoint: () => Endpoint.Endpoint
  /** The source of the password; undefined without one. */
  readonly passwordSource: string | undefined
  /**
   * The configuration of a pool, which the client reads again at each connection: it always has the settings of the server
   * of the route.
   */
  readonly configOf: <Pool extends Omit<PgClient.PgPoolConfig, keyof Routed>>(pool: Pool) => Pool & Routed
  /** The reachable servers of the URL. */
  readonly servers: Effect.Effect<ReadonlyArray<ConnectionUrl.Host & Endpoint.Server>, SqlError>
  /** Looks for the server, by connections of its own, and turns the route there. */
  readonly find: Effect.Effect<void, SqlError>
}

type Test = (server: Endpoint.Server) => boolean

/** The tests of `target_session_attrs`, in the order of preference. */
const accepted: Readonly<Record<ConnectionUrl.ConnectionUrl["sessionAttributes"], ReadonlyArray<Test>>> = {
  any: [() => true],
  "read-write": [(server) => !server.isStandby && !server.isReadOnly],
  "read-only": [(server) => server.isStandby || server.isReadOnly],
  primary: [(server) => !server.isStandby],
  standby: [(server) => server.isStandby],
  "prefer-standby": [(server) => server.isStandby, () => true]
}

/** The interval between looks at a server, and the time that it has to respond. */
const period = Duration.seconds(1)

type Reached = Result.Result<Effect.Success<ReturnType<typeof Endpoint.reach>>, Endpoint.Unreached>

const describe = (reached: Reached) => {
  if (Result.isFailure(reached)) {
    const { endpoint, error } = reached.failure
    return `${ConnectionUrl.formatHost(endpoint)}: ${messageOf(error)}`
  }
  const { endpoint, server } = reached.success
  const state = server.isStandby ? "a standby" : server.isReadOnly ? "read-only" : "a primary"
  return `${ConnectionUrl.formatHost(endpoint)} is ${state}`
}

/** Looks for the server, and watches it until the scope closes. */
export const make = Effect.fnUntraced(function* (
  text: Redacted.Redacted,
  common: Endpoint.Common
): Effect.fn.Return<Route, SqlError, Scope.Scope> {
  const { passwordSource, url } = yield* Endpoint.read(text)
  const { hosts, sessionAttributes } = url
  const tests = accepted[sessionAttributes]
  const isStrict = sessionAttributes !== "any" && sessionAttributes !== "prefer-standby"
  const configs = yield* Endpoint.configsOf(url, common)

  let endpoint: Endpoint.Endpoint = { ...hosts[0], tls: undefined, asksSettings: true }
  let isTried = false
  let isFound = false
  let problem: SqlError | undefined
  const sockets = new Map<Socket, string>()
  // The client reads its configuration at each connection, and knows no other way to send the next one elsewhere.
  const pools: Array<Routed> = []

  const close = (isToBeClosed: (host: string) => boolean) => {
    for (const [socket, host] of sockets) if (isToBeClosed(host)) socket.destroy()
  }

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

  const settingsFor = (to: Endpoint.Endpoint): Routed => ({ ...configs.of(to), stream: () => open(to) })

  const turnTo = (to: Endpoint.Endpoint) => {
    endpoint = to
    isTried = true
    for (const pool of pools) Object.assign(pool, settingsFor(to))
  }

  const readTls =
    url.sslMode === "disable" || hosts.every(ConnectionUrl.isSocket) ? Effect.undefined : ServerTls.make(url)

  /** Reaches for each server. An unreachable one delays none of the others. */
  const reachAll = Effect.flatMap(readTls, (tls) => {
    if (!isTried) turnTo(Endpoint.waysTo(url, hosts[0], tls)[0])
    return Effect.forEach(hosts, (host) => Effect.forkScoped(Effect.result(Endpoint.reach(url, configs, host, tls))))
  })

  /** The first server that is accepted. */
  const look = Effect.gen(function* () {
    const fibers = yield* reachAll
    for (const isAccepted of tests) {
      for (const fiber of fibers) {
        const reached = yield* Fiber.join(fiber)
        if (Result.isSuccess(reached) && isAccepted(reached.success.server)) return reached.success.endpoint
      }
    }
    const reached = yield* Effect.forEach(fibers, Fiber.join)
    const refused = reached.filter(Result.isSuccess).map(({ success }) => ConnectionUrl.formatHost(success.endpoint))
    close((host) => refused.includes(host))
    const [only, ...others] = reached
    if (only !== undefined && others.length === 0 && Result.isFailure(only)) {
      if (!isFound) turnTo(only.failure.endpoint)
      return yield* only.failure.error
    }
    return yield* connectFailure(`No server of the URL is ${sessionAttributes}: ${reached.map(describe).join("; ")}`)
  }).pipe(Effect.scoped)

  const servers = reachAll.pipe(
    Effect.flatMap((fibers) => Effect.forEach(fibers, Fiber.join)),
    Effect.map((reached) =>
      reached.filter(Result.isSuccess).map(({ success: { endpoint: at, server } }) => ({ ...at, ...server }))
    ),
    Effect.scoped
  )

  // With several servers, each has its time: an unreachable one must not take all of it.
  const longest = Duration.sum(configs.connectTimeout, hosts.length > 1 ? period : Duration.zero)
  const find = look.pipe(
    Effect.timeoutOrElse({ duration: longest, orElse: () => Effect.fail(connectFailure("No answer in time")) }),
    Effect.map((found) => {
      turnTo(found)
      isFound = true
      problem = undefined
      close((host) => host !== ConnectionUrl.formatHost(found))
    }),
    Effect.tapError((error) => Effect.sync(() => (problem = isStrict || !isTried ? error : undefined)))
  )

  /** Ends when the server is not accepted any more, does not respond, or closes its connection: it may come back as another. */
  const watchServer = Effect.gen(function* () {
    const closed = yield* Deferred.make<void>()
    const end = () => Deferred.doneUnsafe(closed, Effect.void)
    const connection = yield* Endpoint.connect(configs, endpoint, (socket) => void socket.once("close", end))
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
    yield* Effect.forkScoped(Effect.forever(atMostOften))
  }

  return {
    text,
    url,
    endpoint: () => endpoint,
    passwordSource: configs.passwordFile ?? passwordSource,
    servers,
    configOf: (pool) => {
      const config = { ...pool, ...settingsFor(endpoint) }
      pools.push(config)
      return config
    },
    find
  }
})
