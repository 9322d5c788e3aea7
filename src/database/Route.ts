/**
 * The server that the connections of a pool go to. libpq looks for it at each connection; a pool looks for it when it is
 * made, in an outage, and each second where its URL restricts the servers. Connections to any other server are closed.
 */
import { Socket } from "node:net"
import type { PgClient } from "@effect/sql-pg"
import { Duration, Effect, Exit, Fiber, Option, type Redacted, type Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import * as ConnectionUrl from "./ConnectionUrl.ts"
import * as Endpoint from "./Endpoint.ts"
import * as ServerTls from "./ServerTls.ts"
import { codeOf } from "./SqlFailure.ts"

/** The settings of a pool that its route sets. */
type Routed = keyof Endpoint.Configs["common"] | keyof ReturnType<Endpoint.Configs["of"]> | "stream"

export interface Route {
  /** The text of the URL. */
  readonly text: Redacted.Redacted
  readonly url: ConnectionUrl.ConnectionUrl
  /** The server that new connections go to. */
  readonly endpoint: () => Endpoint.Endpoint
  /** The source of the password; undefined without one. */
  readonly passwordSource: string | undefined
  /** The configuration of a pool. The route updates this object when it turns to another server. */
  readonly configOf: <Pool extends Omit<PgClient.PgPoolConfig, Routed>>(
    pool: Pool
  ) => Pool & Pick<PgClient.PgPoolConfig, Routed>
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

/** The server responded with a SQLSTATE. */
const isAnswer = (error: SqlError) => /^\d/.test(codeOf(error))

type Reached = Exit.Exit<Effect.Success<ReturnType<typeof Endpoint.reach>>, Endpoint.Unreached>

const describe = (host: ConnectionUrl.Host, reached: Reached) => {
  const name = ConnectionUrl.formatHost(host)
  if (Exit.isFailure(reached)) {
    const unreached = Option.getOrUndefined(Exit.findErrorOption(reached))
    return `${name}: ${unreached === undefined ? "no answer" : Endpoint.messageOf(unreached.error)}`
  }
  const { isReadOnly, isStandby } = reached.value.server
  return `${name} ${isStandby ? "is a standby" : isReadOnly ? "is read-only" : "is a primary"}`
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
  const pools: Array<object> = []

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

  const settingsFor = (to: Endpoint.Endpoint) => ({ ...configs.of(to), stream: () => open(to) })

  const turnTo = (to: Endpoint.Endpoint) => {
    endpoint = to
    isTried = true
    for (const pool of pools) Object.assign(pool, settingsFor(to))
  }

  const readTls =
    url.sslMode === "disable" || hosts.every(Endpoint.isSocket)
      ? Effect.undefined
      : Effect.mapError(ServerTls.make(url), ({ message }) => Endpoint.failure(message))

  /** The first server that is accepted. An unreachable one delays none of the others. */
  const look = Effect.gen(function* () {
    const tls = yield* readTls
    if (!isTried) turnTo(Endpoint.waysTo(url, hosts[0], tls)[0])
    const fibers = yield* Effect.forEach(hosts, (host) => Effect.forkScoped(Endpoint.reach(url, configs, host, tls)))
    for (const isAccepted of tests) {
      for (const fiber of fibers) {
        const exit = yield* Fiber.await(fiber)
        if (Exit.isSuccess(exit) && isAccepted(exit.value.server)) return exit.value.endpoint
      }
    }
    const exits = yield* Effect.forEach(fibers, Fiber.await)
    const refused = exits.flatMap((exit) =>
      Exit.isSuccess(exit) ? [ConnectionUrl.formatHost(exit.value.endpoint)] : []
    )
    close((host) => refused.includes(host))
    const unreached =
      exits.length === 1 ? exits.flatMap((exit) => Option.toArray(Exit.findErrorOption(exit)))[0] : undefined
    if (unreached !== undefined) {
      if (!isFound) turnTo(unreached.endpoint)
      return yield* unreached.error
    }
    const texts = hosts.flatMap((host, index) => exits.slice(index, index + 1).map((exit) => describe(host, exit)))
    return yield* Endpoint.failure(`No server of the URL is ${sessionAttributes}: ${texts.join("; ")}`)
  }).pipe(Effect.scoped)

  const servers = Effect.gen(function* () {
    const tls = yield* readTls
    const reached = yield* Effect.forEach(hosts, (host) => Effect.option(Endpoint.reach(url, configs, host, tls)), {
      concurrency: "unbounded"
    })
    return reached.flatMap(Option.toArray).map(({ endpoint: { host, port }, server }) => ({ host, port, ...server }))
  })

  // With several servers, each has its time: an unreachable one must not take all of it.
  const longest = Duration.sum(configs.common.connectTimeout, hosts.length > 1 ? period : Duration.zero)
  const find = look.pipe(
    Effect.timeoutOrElse({ duration: longest, orElse: () => Effect.fail(Endpoint.failure("No answer in time")) }),
    Effect.map((found) => {
      turnTo(found)
      isFound = true
      problem = undefined
      close((host) => host !== ConnectionUrl.formatHost(found))
    }),
    Effect.tapError((error) => Effect.sync(() => (problem = isStrict || !isTried ? error : undefined)))
  )

  /** Ends when the server is not accepted any more, or does not respond. */
  const watchServer = Effect.suspend(() => Endpoint.connect(configs, endpoint)).pipe(
    Effect.flatMap((connection) => {
      const again = Endpoint.look(connection).pipe(Effect.timeout(period), Effect.delay(period))
      return Effect.repeat(again, { while: (server) => tests.some((isAccepted) => isAccepted(server)) })
    }),
    Effect.scoped,
    Effect.ignore
  )

  yield* Effect.catch(find, (error) =>
    Effect.sync(() => {
      if (!isAnswer(error)) problem = error
    })
  )
  if (isStrict) {
    const turned = Effect.andThen(watchServer, Effect.ignore(find))
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(turned, Effect.sleep("200 millis"))))
  }

  return {
    text,
    url,
    endpoint: () => endpoint,
    passwordSource: configs.passwordFile ?? passwordSource,
    servers,
    configOf: (pool) => {
      const config = { ...pool, ...configs.common, ...settingsFor(endpoint) }
      pools.push(config)
      return config
    },
    find
  }
})
