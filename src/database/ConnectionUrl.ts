/**
 * The URL of a Postgres, read as libpq reads it: several hosts, sockets, and its parameters. See "Connection URIs" and
 * "Parameter Key Words" in the documentation of Postgres.
 */
import { type Config, Duration, Redacted, Result } from "effect"
import * as Variable from "../process/Variable.ts"
import { type Host, hostsOf, shown, split } from "./ConnectionUrlParts.ts"

export type { Host } from "./ConnectionUrlParts.ts"

const sslModes = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] as const
const targets = ["any", "read-write", "read-only", "primary", "standby", "prefer-standby"] as const
const tlsVersions = ["TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"] as const

/** What a server has to be: `target_session_attrs`. */
export type SessionAttributes = (typeof targets)[number]

/** What a URL says. */
export interface ConnectionUrl {
  /** In the order in which they are preferred. */
  readonly hosts: readonly [Host, ...Array<Host>]
  readonly user: string | undefined
  readonly password: Redacted.Redacted | undefined
  readonly database: string | undefined
  readonly sslMode: (typeof sslModes)[number]
  /** A file of certificate authorities, or `system`. */
  readonly sslRootCert: string | undefined
  /** A file with the certificate of the client. */
  readonly sslCert: string | undefined
  readonly sslKey: string | undefined
  /** What the key is encrypted with. */
  readonly sslPassword: Redacted.Redacted | undefined
  readonly minimumTls: (typeof tlsVersions)[number] | undefined
  readonly maximumTls: (typeof tlsVersions)[number] | undefined
  readonly sessionAttributes: SessionAttributes
  readonly connectTimeout: Duration.Duration | undefined
  readonly applicationName: string | undefined
  /** Options for the server's command line, such as `-c search_path=app`. */
  readonly options: string | undefined
  readonly passwordFile: string | undefined
  /** Whether a pooler may give each transaction another session: `pgbouncer`, which Prisma reads as well. */
  readonly sharesSessions: boolean | undefined
  /** The parameters that nothing reads. */
  readonly ignored: ReadonlyArray<string>
}

/** The variables of libpq that stand in for a parameter that a URL lacks. */
export const environment = {
  user: "PGUSER",
  password: "PGPASSWORD",
  passfile: "PGPASSFILE",
  sslmode: "PGSSLMODE",
  sslrootcert: "PGSSLROOTCERT",
  sslcert: "PGSSLCERT",
  sslkey: "PGSSLKEY"
} as const

/** Parameters that nothing reads, with the values that ask for what is so anyway. */
const needless: Readonly<Record<string, RegExp>> = {
  channel_binding: /^(disable|prefer)$/,
  client_encoding: /^(utf-?8|auto)$/i,
  gssencmode: /^(disable|prefer)$/,
  keepalives: /^1$/,
  load_balance_hosts: /^disable$/,
  ssl: /^(true|false)$/,
  sslcompression: /^0$/,
  sslnegotiation: /^postgres$/,
  sslsni: /^1$/
}

const oneOf = <A extends string>(
  name: string,
  values: ReadonlyArray<A>,
  given: string | undefined
): Result.Result<A | undefined, string> => {
  const found = values.find((value) => value === given)
  return given === undefined || found !== undefined
    ? Result.succeed(found)
    : Result.fail(`${name} is not one of ${values.join(", ")}`)
}

const seconds = (given: string | undefined): Result.Result<Duration.Duration | undefined, string> => {
  if (given === undefined) return Result.succeed(undefined)
  if (!/^\d{1,4}$/.test(given)) return Result.fail("connect_timeout is not a number of seconds below 10000")
  // For libpq that is without an end. Nothing here waits so long.
  return Result.succeed(Number(given) === 0 ? undefined : Duration.seconds(Number(given)))
}

const secret = (given: string | undefined) => (given === undefined ? undefined : Redacted.make(given))

/**
 * What a text says, or why it is wrong, in words without a secret.
 *
 * @param defaults values of the parameters that it lacks, by their names
 */
export const parse = (
  text: string,
  defaults: Readonly<Record<string, string>> = {}
): Result.Result<ConnectionUrl, string> =>
  Result.gen(function* () {
    const parts = yield* split(text)
    const given = new Map([...Object.entries(defaults), ...parts.parameters])
    const taken = new Set(["host", "port"])
    const take = (name: string) => {
      taken.add(name)
      return given.get(name)
    }
    const sslRootCert = take("sslrootcert")
    const mode = yield* oneOf("sslmode", sslModes, take("sslmode"))
    if (sslRootCert === "system" && mode !== undefined && mode !== "verify-full") {
      return yield* Result.fail("sslrootcert=system needs sslmode=verify-full")
    }
    const needed = given.get("ssl") === "true" ? "require" : "prefer"
    const pooler = yield* oneOf("pgbouncer", ["true", "false"], take("pgbouncer"))
    const said = {
      hosts: yield* hostsOf(parts),
      user: take("user"),
      password: secret(take("password")),
      database: take("dbname"),
      sslMode: mode ?? (sslRootCert === "system" ? "verify-full" : needed),
      sslRootCert,
      sslCert: take("sslcert"),
      sslKey: take("sslkey"),
      sslPassword: secret(take("sslpassword")),
      minimumTls: yield* oneOf("ssl_min_protocol_version", tlsVersions, take("ssl_min_protocol_version")),
      maximumTls: yield* oneOf("ssl_max_protocol_version", tlsVersions, take("ssl_max_protocol_version")),
      sessionAttributes: (yield* oneOf("target_session_attrs", targets, take("target_session_attrs"))) ?? "any",
      connectTimeout: yield* seconds(take("connect_timeout")),
      applicationName: take("application_name"),
      options: take("options"),
      passwordFile: take("passfile"),
      sharesSessions: pooler === undefined ? undefined : pooler === "true"
    }
    const unread = [...given].filter(([name, value]) => !taken.has(name) && needless[name]?.test(value) !== true)
    return { ...said, ignored: unread.map(([name]) => shown(name)) }
  })

/** A server for people, such as `db.example.com:5432`, or the file of its socket. */
export const formatHost = ({ host, port }: Host) =>
  host.startsWith("/") ? `${host}/.s.PGSQL.${port}` : `${host.includes(":") ? `[${host}]` : host}:${port}`

/** A URL without its password and parameters, for people. */
export const format = ({ database = "", hosts, user }: ConnectionUrl) =>
  `postgres://${user === undefined ? "" : `${user}@`}${hosts.map(formatHost).join(",")}/${database}`

/** A variable that holds a URL. */
export const variable = (name: string): Config.Config<Redacted.Redacted> =>
  Variable.checked(name, (text) =>
    Result.mapBoth(parse(text), {
      onSuccess: () => Redacted.make(text),
      onFailure: (reason) => `expected a URL such as postgres://user:password@host:5432/database, but ${reason}`
    })
  )
