/**
 * Where the connections of a pool go. libpq finds that out for each connection; a pool finds it out when it is made, in
 * an outage, and each second where its URL says what a server has to be. Connections to a server that is not that any
 * more are closed.
 */
import { Socket } from "node:net"
import type { PgClient } from "@effect/sql-pg"
import { Duration, Effect, Exit, Fiber, Option, type Redacted, type Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import * as ConnectionUrl from "./ConnectionUrl.ts"
import * as Endpoint from "./Endpoint.ts"
import * as ServerTls from "./ServerTls.ts"
import * as SessionAttributes from "./SessionAttributes.ts"
import { codeOf } from "./SqlFailure.ts"

export interface Route {
  /** The text of the URL. */
  readonly text: Redacted.Redacted
  readonly url: ConnectionUrl.ConnectionUrl
  /** Where new connections go now. */
  readonly endpoint: () => Endpoint.Endpoint
  /** Where the password comes from; undefined where there is none. */
  readonly passwordSource: string | undefined
  /** The configuration of a client that follows the route. It is read anew for each connection, so it must not be copied. */
  readonly configOf: (
    pool: Omit<PgClient.PgPoolConfig, keyof Endpoint.Configs["common"] | keyof ReturnType<Endpoint.Configs["of"]>>
  ) => PgClient.PgPoolConfig
  /** The servers of the URL that can be reached. */
  readonly servers: Effect.Effect<ReadonlyArray<ConnectionUrl.Host & SessionAttributes.Server>, SqlError>
  /** Looks for where connections have to go, by connections of its own, and turns the route there. */
  readonly find: Effect.Effect<void, SqlError>
}

/** How often a server is looked at, and how long it has to answer. */
const period = Duration.seconds(1)

/** A server has answered, with a SQLSTATE. */
const isAnswer = (error: SqlError) => /^\d/.test(codeOf(error))

type Reached = Exit.Exit<Effect.Success<ReturnType<typeof Endpoint.reach>>, Endpoint.Unreached>

const describe = (host: ConnectionUrl.Host, reached: Reached) =>
  Exit.isSuccess(reached)
    ? `${ConnectionUrl.formatHost(host)} ${SessionAttributes.describe(reached.value.server)}`
    : `${ConnectionUrl.formatHost(host)}: ${Option.match(Exit.findErrorOption(reached), {
        onNone: () => "no answer",
        onSome: ({ error }) => Endpoint.messageOf(error)
      })}`

/** Looks for where connections have to go, and watches it until the scope closes. */
export const make = Effect.fnUntraced(function* (
  text: Redacted.Redacted,
  common: Endpoint.Common
): Effect.fn.Return<Route, SqlError, Scope.Scope> {
  const { passwordSource, url } = yield* Endpoint.read(text)
  const { hosts } = url
  const wanted = SessionAttributes.acceptedBy(url.sessionAttributes)
  const isStrict = SessionAttributes.isStrict(url.sessionAttributes)
  const configs = yield* Endpoint.configsOf(url, common)

  let endpoint: Endpoint.Endpoint | undefined
  let isFound = false
  let problem: SqlError | undefined
  const sockets = new Map<Socket, string>()

  const current = (): Endpoint.Endpoint => endpoint ?? { ...hosts[0], tls: undefined, asksSettings: true }

  const close = (isToBeClosed: (host: string) => boolean) => {
    for (const [socket, host] of sockets) if (isToBeClosed(host)) socket.destroy()
  }

  const open = (to: Endpoint.Endpoint) => {
    if (problem !== undefined) {
      const { cause } = problem.reason
      // What was found out when the pool was made need not be found out a second time.
      if (!isStrict && endpoint !== undefined) problem = undefined
      return new Socket().destroy(cause instanceof Error ? cause : undefined)
    }
    const socket = Endpoint.openSocket(to)
    sockets.set(socket, ConnectionUrl.formatHost(to))
    return socket.once("close", () => sockets.delete(socket))
  }

  const readTls =
    url.sslMode === "disable" || hosts.every(Endpoint.isSocket)
      ? Effect.undefined
      : Effect.mapError(ServerTls.make(url), ({ message }) => Endpoint.failure(message))

  /** The first server that is taken. A machine that is gone keeps nobody from the others. */
  const look = Effect.gen(function* () {
    const tls = yield* readTls
    endpoint ??= Endpoint.waysTo(url, hosts[0], tls)[0]
    const fibers = yield* Effect.forEach(hosts, (host) => Effect.forkScoped(Endpoint.reach(url, configs, host, tls)))
    for (const isTaken of wanted) {
      for (const fiber of fibers) {
        const exit = yield* Fiber.await(fiber)
        if (Exit.isSuccess(exit) && isTaken(exit.value.server)) return exit.value.endpoint
      }
    }
    const exits = yield* Effect.forEach(fibers, Fiber.await)
    const refused = exits.flatMap((exit) => (Exit.isSuccess(exit) ? [exit.value.endpoint] : []))
    close((host) => refused.some((each) => ConnectionUrl.formatHost(each) === host))
    const unreached =
      exits.length === 1 ? exits.flatMap((exit) => Option.toArray(Exit.findErrorOption(exit)))[0] : undefined
    if (unreached !== undefined) {
      if (!isFound) endpoint = unreached.endpoint
      return yield* unreached.error
    }
    const texts = hosts.flatMap((host, index) => exits.slice(index, index + 1).map((exit) => describe(host, exit)))
    return yield* Endpoint.failure(`No server of the URL is ${url.sessionAttributes}: ${texts.join("; ")}`)
  }).pipe(Effect.scoped)

  const servers = Effect.flatMap(readTls, (tls) =>
    Effect.forEach(hosts, (host) => Effect.option(Endpoint.reach(url, configs, host, tls)), {
      concurrency: "unbounded"
    })
  ).pipe(
    Effect.map((reached) => reached.flatMap(Option.toArray)),
    Effect.map((reached) => reached.map(({ endpoint: { host, port }, server }) => ({ host, port, ...server })))
  )

  // Whoever has several servers gives each its time: that of one that is gone must not be all.
  const longest = Duration.sum(configs.common.connectTimeout, hosts.length > 1 ? period : Duration.zero)
  const find = look.pipe(
    Effect.timeoutOrElse({ duration: longest, orElse: () => Effect.fail(Endpoint.failure("No answer in time")) }),
    Effect.map((found) => {
      endpoint = found
      isFound = true
      problem = undefined
      close((host) => host !== ConnectionUrl.formatHost(found))
    }),
    Effect.tapError((error) => Effect.sync(() => (problem = isStrict || endpoint === undefined ? error : undefined)))
  )

  /** Ends when the server is not what it has to be, or cannot be asked. */
  const watchServer = Effect.suspend(() => Endpoint.connect(configs, current())).pipe(
    Effect.flatMap((connection) => {
      const again = SessionAttributes.look(connection).pipe(Effect.timeout(period), Effect.delay(period))
      return Effect.repeat(again, { while: (server) => wanted.some((isTaken) => isTaken(server)) })
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
    endpoint: current,
    passwordSource: configs.passwordFile ?? passwordSource,
    servers,
    configOf: (pool) => ({
      ...pool,
      ...configs.common,
      get host() {
        return current().host
      },
      get port() {
        return current().port
      },
      get ssl() {
        return configs.of(current()).ssl
      },
      get password() {
        return configs.of(current()).password
      },
      get startupParameters() {
        return configs.of(current()).startupParameters
      },
      get startupOptions() {
        return configs.of(current()).startupOptions
      },
      get prepare() {
        return configs.of(current()).prepare
      },
      get stream() {
        const to = current()
        return () => open(to)
      }
    }),
    find
  }
})
