/** A server of a URL and the way to connect to it, which is found by attempts as in libpq. Encryption, by `sslmode` and its files. */
import { Buffer } from "node:buffer"
import { existsSync, readFileSync, statSync } from "node:fs"
import { connect as connectSocket, isIP, type Socket } from "node:net"
import { homedir, userInfo } from "node:os"
import { join } from "node:path"
import { type ConnectionOptions, createSecureContext, getCACertificates } from "node:tls"
import { PgConnection } from "@effect/sql-pg"
import { Config, Duration, Effect, Record, Redacted, Result, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { reasonOf } from "../process/Failure.ts"
import * as ConnectionUrl from "./ConnectionUrl.ts"
import { codeOf, connectFailure, messageOf } from "./SqlFailure.ts"

/** The text of a file. Without a name it is the one of libpq, which may be missing. */
const fileText = (given: string | undefined, otherwise: string) => {
  const file = given ?? join(homedir(), ".postgresql", otherwise)
  return given === undefined && !existsSync(file) ? undefined : readFileSync(file, "utf8")
}

/**
 * The verified part of a certificate: none, its authority, or its host as well.
 *
 * As for libpq, a file of authorities is used in every mode, and `require` with one is `verify-ca`. Without one, the
 * modes that verify trust the authorities of Node and of NODE_EXTRA_CA_CERTS. Anyone can get a certificate from these, so
 * `verify-ca` then verifies the host as well.
 */
const verificationOf = (
  { sslMode }: ConnectionUrl.ConnectionUrl,
  hasAuthorities: boolean
): "none" | "authority" | "host" => {
  if (sslMode === "verify-full") return "host"
  if (hasAuthorities) return "authority"
  return sslMode === "verify-ca" ? "host" : "none"
}

/** Reads the certificates of a URL; undefined if none of its connections is encrypted. */
export const tlsOf = (url: ConnectionUrl.ConnectionUrl) =>
  Effect.try({
    try: () => {
      const { hosts, sslCert, sslKey, sslMode, sslPassword, sslRootCert } = url
      if (sslMode === "disable" || hosts.every(ConnectionUrl.isSocket)) return undefined
      const ca = sslRootCert === "system" ? getCACertificates("system") : fileText(sslRootCert, "root.crt")
      const cert = fileText(sslCert, "postgresql.crt")
      const key = cert === undefined ? undefined : fileText(sslKey, "postgresql.key")
      if (cert !== undefined && key === undefined) throw new Error("there is an sslcert, and no sslkey")
      const passphrase = sslPassword && Redacted.value(sslPassword)
      const verification = verificationOf(url, ca !== undefined)
      const options: ConnectionOptions = {
        // Made here: a damaged file would otherwise throw at a connection, where nothing catches it.
        secureContext: createSecureContext({ cert, key, passphrase, ca: verification === "host" ? ca : (ca ?? []) }),
        rejectUnauthorized: verification !== "none",
        ...(verification === "host" ? {} : { checkServerIdentity: () => undefined })
      }
      return { verification, options }
    },
    catch: (cause) => connectFailure(`The certificates of the URL cannot be used: ${reasonOf(cause)}`)
  })

type ServerTls = Effect.Success<ReturnType<typeof tlsOf>>

/** A server, and the way to connect to it. */
export interface ConnectionTarget extends ConnectionUrl.Host {
  /** Undefined: the connection is not encrypted. */
  readonly tls: ServerTls
  /** False for a pooler that refuses settings of sessions. */
  readonly sendsSettings: boolean
}

/** Settings that statements count on, whatever a login or a database has. */
const inherited = {
  DateStyle: "ISO",
  default_transaction_isolation: "read committed",
  quote_all_identifiers: "off",
  standard_conforming_strings: "on"
}

/** Settings of all connections of a pool. Those of the URL take precedence. */
export interface Common {
  readonly applicationName: string
  readonly connectTimeout: Duration.Input
  readonly startupParameters: Readonly<Record<string, string>>
}

/**
 * The password of the first line of a `.pgpass` file that fits a login: `host:port:database:user:password`, where `*` fits
 * anything.
 */
export const passwordIn = (text: string, login: ReadonlyArray<string>): string | undefined =>
  text
    .split(/\r?\n/)
    // At colons after an even number of backslashes, each of which hides the next character.
    .map((line) => line.split(/(?<=(?<!\\)(?:\\\\)*):/).map((part) => part.replaceAll(/\\(.)/g, "$1")))
    .find((fields) => login.every((name, at) => fields[at] === "*" || fields[at] === name))?.[4]

/** The password of a login in a file. As for libpq, one that others may read, or that is a pipe, counts as missing. */
const lookUpPassword = (file: string, login: ReadonlyArray<string>) =>
  Effect.try(() => {
    const stats = statSync(file)
    const isPrivate = process.platform === "win32" || (stats.mode & 0o077) === 0
    return (stats.isFile() && isPrivate && passwordIn(readFileSync(file, "utf8"), login)) || ""
  }).pipe(
    Effect.orElseSucceed(() => ""),
    Effect.map((password) => Redacted.make(password))
  )

/**
 * The bytes that a socket reads at once. The parser of the client copies them into buffers of 64 KiB: two times this and
 * the beginning of a record fit into one. Of itself Node allocates 64 KiB for each read, for which the parser takes 128:
 * then pages of 1,000 records cost a third more CPU, and six times as many full garbage collections.
 */
const readSize = 30 * 1024

/** Opens a socket to a server. Keepalives find out that a silent server is gone. */
export const openSocket = (to: ConnectionTarget): Socket => {
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
 * The encryption of a connection, with the name that the certificate of the server is verified for. Inferred, its type would
 * have each option of this version of Node, which the types of an older one lack.
 */
const sslOf = ({ host, tls }: ConnectionTarget): ConnectionOptions | false =>
  tls !== undefined && { ...tls.options, host, servername: isIP(host) === 0 ? host : undefined }

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
  // Poolers know no other.
  const settingsOfPoolers = Record.filter(startupParameters, (_, name) => name === "TimeZone")
  const timeout = url.connectTimeout ?? Duration.fromInputUnsafe(connectTimeout)
  return {
    url,
    connectTimeout: timeout,
    of: (target: ConnectionTarget, open = openSocket) => ({
      username,
      database,
      applicationName: url.applicationName ?? applicationName,
      connectTimeout: timeout,
      stream: () => open(target),
      host: target.host,
      port: target.port,
      ssl: sslOf(target),
      // The file is read for each connection: such passwords are often changed.
      password: url.password ?? lookUpPassword(file, [target.host, String(target.port), database, username]),
      startupParameters: target.sendsSettings ? { ...inherited, ...startupParameters } : settingsOfPoolers,
      startupOptions: target.sendsSettings ? url.options : undefined,
      // A statement that is prepared by name is in one session, and a pooler may continue in another one.
      prepare: target.sendsSettings && !url.sharesSessions
    })
  }
})

export type Configs = Effect.Success<ReturnType<typeof configsOf>>

/** The state of a server. The time of its start tells servers apart. */
const ServerState = Schema.Struct({ isStandby: Schema.Boolean, isReadOnly: Schema.Boolean, started: Schema.String })
export type ServerState = typeof ServerState.Type

/**
 * A connection to probe a server. It is a multiplexed one, which cancels no statement that is interrupted: where a server
 * hangs, that takes 5 seconds.
 */
export const connectToProbe = (config: PgConnection.Config) => PgConnection.make({ ...config, multiplex: true })

export const stateOf = (connection: PgConnection.PgConnection) =>
  Effect.flatMap(
    connection.query(
      `select pg_is_in_recovery() as "isStandby", current_setting('transaction_read_only')::bool as "isReadOnly",
        pg_postmaster_start_time()::text as started`,
      [],
      false
    ),
    ({ rows: [row] }) => Effect.orDie(Schema.decodeUnknownEffect(ServerState)(row))
  )

const isUnanswered = (error: SqlError) =>
  /^E(CONNREFUSED|HOSTUNREACH|NETUNREACH|NOTFOUND|TIMEDOUT|AI_AGAIN)$/.test(codeOf(error)) ||
  error.reason.message.endsWith("timed out")

const refusesSettings = (error: SqlError) => messageOf(error).startsWith("unsupported startup parameter")

/** The ways to a server, in the order of the attempts. A Unix socket is never encrypted. */
export const waysTo = (
  { sslMode }: ConnectionUrl.ConnectionUrl,
  { host, port }: ConnectionUrl.Host,
  tls: ServerTls
): readonly [ConnectionTarget, ...ReadonlyArray<ConnectionTarget>] => {
  const plain: ConnectionTarget = { host, port, tls: undefined, sendsSettings: true }
  if (ConnectionUrl.isSocket(plain) || tls === undefined) return [plain]
  const encrypted: ConnectionTarget = { ...plain, tls }
  return sslMode === "prefer" || sslMode === "allow" ? [encrypted, plain] : [encrypted]
}

/** Finds the way to a server, and reads its state. Without one, returns the error of the way that tells most. */
export const reach = Effect.fnUntraced(function* (configs: Configs, host: ConnectionUrl.Host, tls: ServerTls) {
  const connected = (target: ConnectionTarget) =>
    connectToProbe(configs.of(target)).pipe(
      Effect.flatMap(stateOf),
      Effect.map((state) => ({ target, state })),
      Effect.scoped
    )
  const tried = (target: ConnectionTarget) =>
    connected(target).pipe(
      Effect.catchIf(refusesSettings, () => connected({ ...target, sendsSettings: false })),
      Effect.catch((error) => Effect.succeed({ target, error }))
    )
  const [first, second] = waysTo(configs.url, host, tls)
  const one = yield* tried(first)
  if ("state" in one || second === undefined || isUnanswered(one.error)) return one
  const other = yield* tried(second)
  return "state" in other || one.error.reason.message.endsWith("refused TLS") ? other : one
})
