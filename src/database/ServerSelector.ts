/**
 * Selects the server of a URL that the connections of a pool go to. libpq selects it at each connection; a pool selects it
 * when it is made and in an outage. Where the URL restricts the servers, it also does so each second, and once a connection
 * is closed. Connections to any other server are closed.
 */
import { Socket } from "node:net"
import type { PgClient } from "@effect/sql-pg"
import { Deferred, Duration, Effect, Fiber, type Redacted, Schedule } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import * as Loop from "../process/Loop.ts"
import * as ConnectionUrl from "./ConnectionUrl.ts"
import * as ConnectionTarget from "./ConnectionTarget.ts"
import { codeOf, connectFailure, messageOf } from "./SqlFailure.ts"

/** The settings of a pool that depend on its server. */
type TargetSettings = Pick<PgClient.PgPoolConfig, keyof ReturnType<ConnectionTarget.Configs["of"]>>

/** The tests of `target_session_attrs`, in the order of preference. */
const accepted: Readonly<
  Record<
    ConnectionUrl.ConnectionUrl["sessionAttributes"],
    ReadonlyArray<(server: ConnectionTarget.ServerState) => boolean>
  >
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

type Reached = Effect.Success<ReturnType<typeof ConnectionTarget.reach>>

const describe = (reached: Reached) => {
  const host = ConnectionUrl.formatHost(reached.target)
  if ("error" in reached) return `${host}: ${messageOf(reached.error)}`
  const { isReadOnly, isStandby } = reached.state
  return `${host} is ${isStandby ? "a standby" : isReadOnly ? "read-only" : "a primary"}`
}

/** Selects the server, and watches it until the scope closes. */
export const make = Effect.fnUntraced(function* (text: Redacted.Redacted, common: ConnectionTarget.Common) {
  const configs = yield* ConnectionTarget.configsOf(text, common)
  const { url } = configs
  const { hosts, sessionAttributes } = url
  const tests = accepted[sessionAttributes]
  const isStrict = sessionAttributes !== "any" && sessionAttributes !== "prefer-standby"

  let target: ConnectionTarget.ConnectionTarget = { ...hosts[0], tls: undefined, sendsSettings: true }
  let isTried = false
  let isFound = false
  let problem: SqlError | undefined
  const sockets = new Map<Socket, string>()
  // The client reads its configuration at each connection, and knows no other way to send the next one elsewhere.
  const pools: Array<TargetSettings> = []

  const open = (to: ConnectionTarget.ConnectionTarget) => {
    if (problem !== undefined) {
      const { cause } = problem.reason
      // A failure to make the pool is reported once. Then each connection finds out by itself.
      if (!isStrict && isTried) problem = undefined
      return new Socket().destroy(cause instanceof Error ? cause : undefined)
    }
    const socket = ConnectionTarget.openSocket(to)
    sockets.set(socket, ConnectionUrl.formatHost(to))
    return socket.once("close", () => sockets.delete(socket))
  }

  const switchTo = (to: ConnectionTarget.ConnectionTarget) => {
    target = to
    isTried = true
    for (const pool of pools) Object.assign(pool, configs.of(to, open))
  }

  /** Reaches for each server. An unreachable one delays none of the others. */
  const reachAll = Effect.flatMap(ConnectionTarget.tlsOf(url), (tls) => {
    if (!isTried) switchTo(ConnectionTarget.waysTo(url, hosts[0], tls)[0])
    return Effect.forEach(hosts, (host) => Effect.forkScoped(ConnectionTarget.reach(configs, host, tls)))
  })

  /** The first server that is accepted. */
  const choose = Effect.gen(function* () {
    const fibers = yield* reachAll
    for (const isAccepted of tests) {
      for (const fiber of fibers) {
        const reached = yield* Fiber.join(fiber)
        if ("state" in reached && isAccepted(reached.state)) return reached.target
      }
    }
    const reached = yield* Fiber.joinAll(fibers)
    const refused = reached.filter((one) => "state" in one).map((one) => ConnectionUrl.formatHost(one.target))
    for (const [socket, host] of sockets) if (refused.includes(host)) socket.destroy()
    const [only, ...others] = reached
    if (only !== undefined && others.length === 0 && "error" in only) {
      if (!isFound) switchTo(only.target)
      return yield* only.error
    }
    return yield* connectFailure(`No server of the URL is ${sessionAttributes}: ${reached.map(describe).join("; ")}`)
  }).pipe(Effect.scoped)

  /** The reachable servers of the URL. */
  const servers = reachAll.pipe(
    Effect.flatMap(Fiber.joinAll),
    Effect.map((reached) => reached.flatMap((one) => ("state" in one ? [{ ...one.target, ...one.state }] : []))),
    Effect.scoped
  )

  // With several servers, each has its time: an unreachable one must not take all of it.
  const longest = Duration.sum(configs.connectTimeout, hosts.length > 1 ? period : Duration.zero)
  /** Selects the server, by connections of its own. Later connections of the pools go there. */
  const select = choose.pipe(
    Effect.timeoutOrElse({ duration: longest, orElse: () => connectFailure("No answer in time") }),
    Effect.map((server) => {
      switchTo(server)
      isFound = true
      problem = undefined
      for (const [socket, host] of sockets) if (host !== ConnectionUrl.formatHost(server)) socket.destroy()
    }),
    Effect.tapError((error) => Effect.sync(() => (problem = isStrict || !isTried ? error : undefined)))
  )

  /** Ends when the server is not accepted any more, does not respond, or closes its connection: it may come back as another. */
  const watchServer = Effect.gen(function* () {
    const closed = yield* Deferred.make<void>()
    const end = () => Deferred.doneUnsafe(closed, Effect.void)
    const connection = yield* ConnectionTarget.connectToProbe(
      configs.of(target, (to) => ConnectionTarget.openSocket(to).once("close", end))
    )
    const watching = Effect.repeat(Effect.timeout(ConnectionTarget.stateOf(connection), period), {
      while: (server) => tests.some((isAccepted) => isAccepted(server)),
      schedule: Schedule.spaced(period)
    })
    yield* Effect.raceFirst(watching, Deferred.await(closed))
  }).pipe(Effect.scoped, Effect.ignore)

  yield* Effect.catch(select, (error) =>
    Effect.sync(() => {
      // Where the server responds with a SQLSTATE, the first connection finds out by itself.
      if (!/^\d/.test(codeOf(error))) problem = error
    })
  )
  if (isStrict) {
    const turned = Effect.andThen(watchServer, Effect.ignore(select))
    // A server that is going away may be found once more.
    const atMostOften = Effect.all([turned, Effect.sleep("200 millis")], { concurrency: 2, discard: true })
    yield* Effect.forkScoped(Loop.forever("The selection of a server", atMostOften))
  }

  return {
    text,
    url,
    target: () => target,
    servers,
    /** The configuration of a pool. It changes with the selected server. */
    configOf: <Pool extends Omit<PgClient.PgPoolConfig, keyof TargetSettings>>(pool: Pool): Pool & TargetSettings => {
      const config = { ...pool, ...configs.of(target, open) }
      pools.push(config)
      return config
    },
    select
  }
})

export type ServerSelector = Effect.Success<ReturnType<typeof make>>
