/** One server of a URL and the way to it, found by trying as libpq does. */
import { Buffer } from "node:buffer"
import { readFile, stat } from "node:fs/promises"
import { connect as connectSocket, type Socket } from "node:net"
import { homedir, userInfo } from "node:os"
import { join } from "node:path"
import { PgConnection } from "@effect/sql-pg"
import { Config, Duration, Effect, Record, Redacted, Result, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import * as ConnectionUrl from "./ConnectionUrl.ts"
import type { ServerTls } from "./ServerTls.ts"
import { codeOf, connectFailure, messageOf } from "./SqlFailure.ts"

/** A server and how to reach it. */
export interface Endpoint extends ConnectionUrl.Host {
  /** Undefined: the connection is not encrypted. */
  readonly tls: ServerTls | undefined
  /** False for a pooler that refuses settings of sessions. */
  readonly asksSettings: boolean
}

/** Settings of all connections of a pool, wherever they go. */
export interface Common {
  readonly applicationName: string
  /** The URL's own takes precedence. */
  readonly connectTimeout: Duration.Input
  /** Settings that sessions ask for. */
  readonly startupParameters: Readonly<Record<string, string>>
}

/** Reads a URL, with the variables of libpq in place of the parameters that it lacks. */
export const read = Effect.fnUntraced(function* (text: Redacted.Redacted) {
  const values: Readonly<Record<string, string>> = Record.getSomes(
    yield* Effect.all(Record.map(ConnectionUrl.environment, (name) => Effect.option(Config.NonEmptyString(name))))
  )
  const parsed = ConnectionUrl.parse(Redacted.value(text), values)
  if (Result.isFailure(parsed)) return yield* connectFailure(`The URL is wrong: ${parsed.failure}`)
  const { password } = parsed.success
  const isOfUrl = password !== undefined && Redacted.value(password) !== values["password"]
  return {
    url: parsed.success,
    passwordSource: password === undefined ? undefined : isOfUrl ? "the URL" : "PGPASSWORD"
  }
})

/** A user of a database on a server. */
export interface Login extends ConnectionUrl.Host {
  readonly database: string
  readonly user: string
}

const field = String.raw`((?:\\.|[^:\\])*)`
const passwordLine = new RegExp(`^(?!#)${field}:${field}:${field}:${field}:(.+)$`)

const unescaped = (part: string) => part.replaceAll(/\\(.)/g, "$1")

/**
 * The password of the first line of a `.pgpass` file that fits a login: `host:port:database:user:password`, where `*`
 * fits anything. A socket is also `localhost`. (The package `pgpass` takes the last line that fits.)
 */
export const passwordIn = (text: string, { database, host, port, user }: Login): string | undefined => {
  const wanted = [host.startsWith("/") ? [host, "localhost"] : [host], [String(port)], [database], [user]]
  for (const line of text.split(/\r?\n/)) {
    const [, ...parts] = passwordLine.exec(line) ?? []
    const fits = wanted.every((names, at) => parts[at] === "*" || names.includes(unescaped(parts[at] ?? "")))
    if (fits && parts[4] !== undefined) return unescaped(parts[4])
  }
  return undefined
}

/** The password of a login in a file. As for libpq, a file that others may read counts as missing. */
const lookUpPassword = (file: string, login: Login) =>
  Effect.gen(function* () {
    const { mode } = yield* Effect.tryPromise(() => stat(file))
    if (process.platform !== "win32" && (mode & 0o077) !== 0) return undefined
    const password = passwordIn(yield* Effect.tryPromise(() => readFile(file, "utf8")), login)
    return password === undefined ? undefined : Redacted.make(password)
  }).pipe(Effect.orElseSucceed(() => undefined))

/**
 * The bytes that a socket reads at once. The parser of the client copies them into buffers of 64 KiB: two times this and
 * the beginning of a record fit into one. Of itself Node allocates 64 KiB for each read, for which the parser takes 128:
 * then pages of 1,000 records cost a third more CPU, and six times as many full garbage collections.
 */
const readSize = 30 * 1024

/** Opens a socket to a server. Keepalives find out that a silent server is gone. */
export const openSocket = (to: Endpoint): Socket => {
  const address = ConnectionUrl.isSocket(to)
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

/** The configurations of connections of a URL. */
export const configsOf = Effect.fnUntraced(function* (
  url: ConnectionUrl.ConnectionUrl,
  { applicationName, connectTimeout, startupParameters }: Common
) {
  const username = url.user ?? userInfo().username
  const database = url.database ?? username
  const file = url.passwordFile ?? join(homedir(), ".pgpass")
  const inFile = ({ host, port }: ConnectionUrl.Host) => lookUpPassword(file, { host, port, database, user: username })
  const found = url.password === undefined ? yield* Effect.forEach(url.hosts, inFile) : []
  const isInFile = found.some((password) => password !== undefined)
  const { TimeZone } = startupParameters
  // Poolers know no other.
  const settingsOfPoolers: Readonly<Record<string, string>> = TimeZone === undefined ? {} : { TimeZone }
  const common = {
    username,
    database,
    applicationName: url.applicationName ?? applicationName,
    connectTimeout: url.connectTimeout ?? Duration.fromInputUnsafe(connectTimeout)
  }
  return {
    connectTimeout: common.connectTimeout,
    passwordFile: isInFile ? file : undefined,
    of: (endpoint: Endpoint) => ({
      ...common,
      host: endpoint.host,
      port: endpoint.port,
      ssl: endpoint.tls?.options ?? false,
      // Read for each connection: such passwords are often changed.
      password: isInFile ? Effect.map(inFile(endpoint), (password) => password ?? Redacted.make("")) : url.password,
      startupParameters: endpoint.asksSettings ? startupParameters : settingsOfPoolers,
      startupOptions: endpoint.asksSettings ? url.options : undefined,
      // A statement that is prepared by name is in one session, and a pooler may go on in another one.
      prepare: !(url.sharesSessions ?? !endpoint.asksSettings)
    })
  }
})

export type Configs = Effect.Success<ReturnType<typeof configsOf>>

/** Opens a connection outside of any pool, until the scope closes. */
export const connect = (configs: Configs, endpoint: Endpoint, onOpen: (socket: Socket) => void = () => {}) =>
  PgConnection.make({
    ...configs.of(endpoint),
    stream: () => {
      const socket = openSocket(endpoint)
      onOpen(socket)
      return socket
    }
  })

/** The state of a server. The time of its start tells servers apart. */
const Server = Schema.Struct({ isStandby: Schema.Boolean, isReadOnly: Schema.Boolean, started: Schema.String })
export type Server = typeof Server.Type

const decodeServer = Schema.decodeUnknownEffect(Server)

/** Reads the state of the server of a connection. */
export const look = (connection: PgConnection.PgConnection) =>
  Effect.flatMap(
    connection.query(
      `select pg_is_in_recovery() as "isStandby", current_setting('transaction_read_only')::bool as "isReadOnly",
        pg_postmaster_start_time()::text as started`,
      [],
      false
    ),
    ({ rows: [row] }) => Effect.orDie(decodeServer(row))
  )

const isUnanswered = (error: SqlError) =>
  /^E(CONNREFUSED|HOSTUNREACH|NETUNREACH|NOTFOUND|TIMEDOUT|AI_AGAIN)$/.test(codeOf(error)) ||
  error.reason.message.endsWith("timed out")

const refusesSettings = (error: SqlError) => messageOf(error).startsWith("unsupported startup parameter")

/** The ways to a server, in the order of the attempts. A Unix socket is never encrypted. */
export const waysTo = (
  { sslMode }: ConnectionUrl.ConnectionUrl,
  { host, port }: ConnectionUrl.Host,
  tls: ServerTls | undefined
) => {
  const plain: Endpoint = { host, port, tls: undefined, asksSettings: true }
  const encrypted: Endpoint = { ...plain, tls }
  if (ConnectionUrl.isSocket(plain) || sslMode === "disable") return [plain] as const
  if (sslMode === "prefer") return [encrypted, plain] as const
  return sslMode === "allow" ? ([plain, encrypted] as const) : ([encrypted] as const)
}

/** A server is not reachable; the error is that of the way that tells most. */
export interface Unreached {
  readonly endpoint: Endpoint
  readonly error: SqlError
}

/** Finds the way to a server, and reads its state. */
export const reach = Effect.fnUntraced(function* (
  url: ConnectionUrl.ConnectionUrl,
  configs: Configs,
  host: ConnectionUrl.Host,
  tls: ServerTls | undefined
) {
  const attempt = (endpoint: Endpoint) =>
    Effect.map(Effect.scoped(Effect.flatMap(connect(configs, endpoint), look)), (server) => ({ endpoint, server }))
  let unreached: Unreached | undefined
  for (const endpoint of waysTo(url, host, tls)) {
    const tried = yield* attempt(endpoint).pipe(
      Effect.catchIf(refusesSettings, () => attempt({ ...endpoint, asksSettings: false })),
      Effect.result
    )
    if (Result.isSuccess(tried)) return tried.success
    const error = tried.failure
    // The error of an encrypted connection tells more, if there was one.
    if (endpoint.tls !== undefined || unreached?.error.reason.message.endsWith("refused TLS") !== false) {
      unreached = { endpoint, error }
    }
    if (isUnanswered(error)) break
  }
  return yield* unreached === undefined ? Effect.die("There is no way to a server") : Effect.fail(unreached)
})
