/** One server of a URL, and the way to it: found by trying, as libpq does. */
import { Buffer } from "node:buffer"
import { connect as connectSocket, type Socket } from "node:net"
import { userInfo } from "node:os"
import { PgConnection } from "@effect/sql-pg"
import { Config, Data, Duration, Effect, Option, Redacted, Result } from "effect"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import * as ConnectionUrl from "./ConnectionUrl.ts"
import * as PasswordFile from "./PasswordFile.ts"
import type { ServerTls } from "./ServerTls.ts"
import * as SessionAttributes from "./SessionAttributes.ts"
import { codeOf } from "./SqlFailure.ts"

/** A server and how to reach it. */
export interface Endpoint extends ConnectionUrl.Host {
  /** Undefined: the connection is not encrypted. */
  readonly tls: ServerTls | undefined
  /** Whether sessions ask for their settings: many poolers refuse to be asked. */
  readonly asksSettings: boolean
}

/** What connections have, wherever they go. */
export interface Common {
  readonly applicationName: string
  /** Unless the URL says it. */
  readonly connectTimeout: Duration.Input
  /** What sessions ask for. */
  readonly startupParameters: Readonly<Record<string, string>>
  /** Whether statements may be prepared by name; they may by default. */
  readonly prepare?: boolean
}

export const failure = (message: string) =>
  new SqlError({ reason: new ConnectionError({ cause: new Error(message), message, operation: "connect" }) })

export const messageOf = ({ reason }: SqlError) =>
  reason.cause instanceof Error ? reason.cause.message : reason.message

/** The values of the variables that stand in for parameters, by the names of these. */
const defaults = Effect.map(
  Effect.forEach(Object.entries(ConnectionUrl.environment), ([name, variable]) =>
    Effect.map(Effect.option(Config.NonEmptyString(variable)), (value) =>
      Option.isSome(value) ? [[name, value.value] as const] : []
    )
  ),
  (found) => Object.fromEntries(found.flat())
)

/** What a URL says, with what the variables of libpq add to it. */
export const read = Effect.fnUntraced(function* (url: Redacted.Redacted) {
  const values = yield* defaults
  const parsed = ConnectionUrl.parse(Redacted.value(url), values)
  if (Result.isFailure(parsed)) return yield* failure(`The URL is wrong: ${parsed.failure}`)
  const { password } = parsed.success
  const isOfUrl = password !== undefined && Redacted.value(password) !== values["password"]
  return {
    url: parsed.success,
    passwordSource: password === undefined ? undefined : isOfUrl ? "the URL" : "PGPASSWORD"
  }
})

export const isSocket = ({ host }: ConnectionUrl.Host) => host.startsWith("/")

/**
 * How many bytes a socket reads at once. The parser of the client copies them into buffers of 64 KiB: two times this and
 * the beginning of a record fit into one. Of itself Node allocates 64 KiB for each read, for which the parser takes 128:
 * then pages of 1,000 records cost a third more CPU, and six times as many full garbage collections.
 */
const readSize = 30 * 1024

/** Opens a socket to a server. The system looks after a while whether a server that says nothing is there. */
export const openSocket = (to: Endpoint): Socket => {
  const address = isSocket(to)
    ? { path: ConnectionUrl.formatHost(to) }
    : { host: to.host, port: to.port, keepAlive: true, keepAliveInitialDelay: 30_000, noDelay: true }
  // TLS reads by itself.
  if (to.tls !== undefined) return connectSocket(address)
  const socket: Socket = connectSocket({
    ...address,
    onread: {
      buffer: Buffer.allocUnsafeSlow(readSize),
      // The next read overwrites the bytes: the parser has copied them when this returns, which a test holds.
      callback: (size, buffer) => {
        socket.emit("data", buffer.subarray(0, size))
        return true
      }
    }
  })
  return socket
}

/** What poolers know. */
const settingsOfPoolers = ({ TimeZone }: Readonly<Record<string, string>>) =>
  TimeZone === undefined ? {} : { TimeZone }

/** The configurations of connections of a URL. */
export const configsOf = Effect.fnUntraced(function* (
  url: ConnectionUrl.ConnectionUrl,
  { applicationName, connectTimeout, prepare = true, startupParameters }: Common
) {
  const username = url.user ?? userInfo().username
  const database = url.database ?? username
  const file = url.passwordFile ?? PasswordFile.usual
  const inFile = (host: ConnectionUrl.Host) => PasswordFile.lookUp(file, { ...host, database, user: username })
  const found = url.password === undefined ? yield* Effect.forEach(url.hosts, inFile) : []
  const isInFile = found.some((password) => password !== undefined)
  // Read for each connection: such passwords are often changed.
  const passwordOf = (host: ConnectionUrl.Host) =>
    isInFile ? Effect.map(inFile(host), (password) => password ?? Redacted.make("")) : url.password
  return {
    passwordFile: isInFile ? file : undefined,
    /** What is the same for all servers. */
    common: {
      username,
      database,
      applicationName: url.applicationName ?? applicationName,
      connectTimeout: url.connectTimeout ?? Duration.fromInputUnsafe(connectTimeout)
    },
    /** What is another for each. */
    of: (endpoint: Endpoint) => ({
      host: endpoint.host,
      port: endpoint.port,
      ssl: endpoint.tls?.options ?? false,
      password: passwordOf(endpoint),
      startupParameters: endpoint.asksSettings ? startupParameters : settingsOfPoolers(startupParameters),
      startupOptions: endpoint.asksSettings ? url.options : undefined,
      // What is prepared by name is in one session, and a pooler may go on in another one.
      prepare: prepare && !(url.sharesSessions ?? !endpoint.asksSettings)
    })
  } as const
})

export type Configs = Effect.Success<ReturnType<typeof configsOf>>

/** Opens a connection that is of no pool, until the scope closes. */
export const connect = ({ common, of }: Configs, endpoint: Endpoint) =>
  PgConnection.make({ ...common, ...of(endpoint), stream: () => openSocket(endpoint) })

const isUnanswered = (error: SqlError) =>
  /^E(CONNREFUSED|HOSTUNREACH|NETUNREACH|NOTFOUND|TIMEDOUT|AI_AGAIN)$/.test(codeOf(error)) ||
  error.reason.message.endsWith("timed out")

const refusesTls = ({ reason }: SqlError) => reason.message.endsWith("refused TLS")

/** A pooler refuses a connection that asks for what it does not know. */
const refusesSettings = (error: SqlError) => messageOf(error).startsWith("unsupported startup parameter")

/** The ways to a server, in the order in which they are tried. On a Unix socket nothing is encrypted. */
export const waysTo = (
  { sslMode }: ConnectionUrl.ConnectionUrl,
  { host, port }: ConnectionUrl.Host,
  tls: ServerTls | undefined
) => {
  const plain: Endpoint = { host, port, tls: undefined, asksSettings: true }
  const encrypted: Endpoint = { ...plain, tls }
  if (isSocket(plain) || sslMode === "disable") return [plain] as const
  if (sslMode === "prefer") return [encrypted, plain] as const
  return sslMode === "allow" ? ([plain, encrypted] as const) : ([encrypted] as const)
}

/** A server cannot be reached, by the way that tells most of it. */
export class Unreached extends Data.TaggedError("Unreached")<{
  readonly endpoint: Endpoint
  readonly error: SqlError
}> {}

/** The way to a server, and what it is. */
export const reach = Effect.fnUntraced(function* (
  url: ConnectionUrl.ConnectionUrl,
  configs: Configs,
  host: ConnectionUrl.Host,
  tls: ServerTls | undefined
) {
  const attempt = (endpoint: Endpoint) =>
    Effect.map(Effect.scoped(Effect.flatMap(connect(configs, endpoint), SessionAttributes.look)), (server) => ({
      endpoint,
      server
    }))
  let unreached: Unreached | undefined
  for (const endpoint of waysTo(url, host, tls)) {
    const tried = yield* attempt(endpoint).pipe(
      Effect.catchIf(refusesSettings, () => attempt({ ...endpoint, asksSettings: false })),
      Effect.mapError((error) => new Unreached({ endpoint, error })),
      Effect.result
    )
    if (Result.isSuccess(tried)) return tried.success
    // What is said of the encrypted connection tells more, if there was one.
    if (unreached === undefined || endpoint.tls !== undefined || refusesTls(unreached.error)) unreached = tried.failure
    if (isUnanswered(tried.failure.error)) break
  }
  return yield* unreached ?? Effect.die("There is no way to a server")
})
