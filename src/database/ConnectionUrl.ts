/** The URL of a Postgres: one host, and the parameters of libpq with their meaning there. Errors are words without a secret. */
import { isIP } from "node:net"
import { type ConnectionOptions as TlsOptions, createSecureContext } from "node:tls"
import { type Config, Duration, Predicate, Redacted, Result } from "effect"
import { parse } from "pg-connection-string"
import { errorText } from "../process/Failure.ts"
import * as Variable from "../process/Variable.ts"

const sslModes = ["disable", "prefer", "require", "verify-ca", "verify-full"]

const text = (value: unknown) => (Predicate.isString(value) && value !== "" ? value : undefined)

const read = (given: string) => {
  if (!/^postgres(ql)?:\/\//.test(given)) throw new Error("it does not begin with postgres://")
  const url = parse(given, { useLibpqCompat: true })
  const host = text(url.host)
  if (host === undefined) throw new Error("a host is missing")
  if (host.includes(",")) throw new Error("it has several hosts: name one, such as that of a proxy")
  const { connect_timeout: seconds = "0", sslmode } = url
  if (sslmode !== undefined && !sslModes.some((mode) => mode === sslmode)) {
    throw new Error(`sslmode is not one of ${sslModes.join(", ")}`)
  }
  if (Predicate.isString(url.ssl)) throw new Error("ssl is not true: use sslmode")
  if (!/^\d{1,4}$/.test(String(seconds))) throw new Error("connect_timeout is not a number of seconds below 10000")
  const tls: TlsOptions = Predicate.isObject(url.ssl) ? url.ssl : {}
  const isEncrypted = url.ssl !== undefined && url.ssl !== false && !host.startsWith("/")
  const verified: TlsOptions = {
    ...tls,
    secureContext: createSecureContext(tls),
    host,
    servername: isIP(host) === 0 ? host : undefined
  }
  return {
    /** One that begins with a slash is the folder of a Unix socket. */
    host,
    port: Number(url.port || 5432),
    user: text(url.user),
    password: text(url.password) === undefined ? undefined : Redacted.make(text(url.password) ?? ""),
    database: text(url.database),
    /** With the name that the certificate of the server is verified for. A damaged certificate fails here. */
    ssl: isEncrypted && verified,
    connectTimeout: Number(seconds) === 0 ? undefined : Duration.seconds(Number(seconds)),
    applicationName: text(url.application_name),
    /** Options for the server's command line, such as `-c search_path=app`. */
    options: text(url.options),
    /** True where a pooler may give each transaction another session: `pgbouncer`, which Prisma reads as well. */
    isPooled: url["pgbouncer"] === "true"
  }
}

/** Turns a URL into the options of a connection, by `pg` or PgClient. It reads the certificates that the URL names. */
export const connectionOptions = (url: string) =>
  Result.try({
    try: () => read(url),
    catch: (error) => errorText(error).replace(/^Invalid URL$/, "it is not the URL of one host")
  })

export type ConnectionOptions = Result.Result.Success<ReturnType<typeof connectionOptions>>

/** A server for people, such as `db.example.com:5432`, or the file of its socket. */
export const formatHost = ({ host, port }: Readonly<{ host: string; port: number }>) =>
  host.startsWith("/") ? `${host}/.s.PGSQL.${port}` : `${host.includes(":") ? `[${host}]` : host}:${port}`

/** A URL without its password and parameters, for people. */
export const format = ({
  database = "",
  user,
  ...at
}: Pick<ConnectionOptions, "database" | "host" | "port" | "user">) =>
  `postgres://${user === undefined ? "" : `${user}@`}${formatHost(at)}/${database}`

/** A variable that holds a URL. */
export const variable = (name: string): Config.Config<Redacted.Redacted> =>
  Variable.checked(name, (given) =>
    Result.mapBoth(connectionOptions(given), {
      onSuccess: () => Redacted.make(given),
      onFailure: (reason) => `expected a URL such as postgres://user:password@host:5432/database, but ${reason}`
    })
  )
