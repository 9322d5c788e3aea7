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

export interface Endpoint extends ConnectionUrl.Host {
  /** Undefined: the connection is not encrypted. */
  readonly tls: ServerTls | undefined
  /** False for a pooler that refuses settings of sessions. */
  readonly asksSettings: boolean
}

/** Settings of all connections of a pool. Those of the URL take precedence. */
export interface Common {
  readonly applicationName: string
  readonly connectTimeout: Duration.Input
  readonly startupParameters: Readonly<Record<string, string>>
}

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

/**
 * The configurations of connections of a URL, whose sockets `open` opens. The variables of libpq take the place of the
 * parameters that it lacks.
 */
export const configsOf = Effect.fnUntraced(function* (
  text: Redacted.Redacted,
  { applicationName, connectTimeout, startupParameters }: Common
) {
  const values: Readonly<Record<string, string>> = Record.getSomes(
    yield* Effect.all(Record.map(ConnectionUrl.environment, (name) => Effect.option(Config.NonEmptyString(name))))
  )
  const parsed = ConnectionUrl.parse(Redacted.value(text), values)
  if (Result.isFailure(parsed)) return yield* connectFailure(`The URL is wrong: ${parsed.failure}`)
  const url = parsed.success
  const username = url.user ?? userInfo().username
  const database = url.database ?? username
  const file = url.passwordFile ?? join(homedir(), ".pgpass")
  const inFile = ({ host, port }: ConnectionUrl.Host) => lookUpPassword(file, { host, port, database, user: username })
  const found = url.password === undefined ? yield* Effect.forEach(url.hosts, inFile) : []
  const isInFile = found.some((password) => password !== undefined)
  const isOfUrl = url.password !== undefined && Redacted.value(url.password) !== values["password"]
  // Poolers know no other.
  const settingsOfPoolers = Record.filter(startupParameters, (_, name) => name === "TimeZone")
  const timeout = url.connectTimeout ?? Duration.fromInputUnsafe(connectTimeout)
  return {
    url,
    connectTimeout: timeout,
    passwordSource: isInFile ? file : isOfUrl ? "the URL" : url.password && "PGPASSWORD",
    of: (endpoint: Endpoint, open = openSocket) => ({
      username,
      database,
      applicationName: url.applicationName ?? applicationName,
      connectTimeout: timeout,
      stream: () => open(endpoint),
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

/** The state of a server. The time of its start tells servers apart. */
const Server = Schema.Struct({ isStandby: Schema.Boolean, isReadOnly: Schema.Boolean, started: Schema.String })
export type Server = typeof Server.Type

export const look = (connection: PgConnection.PgConnection) =>
  Effect.flatMap(
    connection.query(
      `select pg_is_in_recovery() as "isStandby", current_setting('transaction_read_only')::bool as "isReadOnly",
        pg_postmaster_start_time()::text as started`,
      [],
      false
    ),
    ({ rows: [row] }) => Effect.orDie(Schema.decodeUnknownEffect(Server)(row))
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

/** Finds the way to a server, and reads its state. Without one, returns the error of the way that tells most. */
export const reach = Effect.fnUntraced(function* (
  configs: Configs,
  host: ConnectionUrl.Host,
  tls: ServerTls | undefined
) {
  const attempt = (endpoint: Endpoint) =>
    PgConnection.make(configs.of(endpoint)).pipe(
      Effect.flatMap(look),
      Effect.map((server) => ({ endpoint, server })),
      Effect.scoped
    )
  let unreached: { readonly endpoint: Endpoint; readonly error: SqlError } | undefined
  for (const endpoint of waysTo(configs.url, host, tls)) {
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
  return unreached ?? (yield* Effect.die("There is no way to a server"))
})
